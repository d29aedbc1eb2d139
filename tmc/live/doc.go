// Package live has the configuration of applications that can change while all
// runs: a JSON document for each, in Redis or in etcd.
//
//	{
//	  "enabled": true,
//	  "rate": 200,
//	  "topN": 50,
//	  "leave": 0.7,
//	  "minStay": "10s",
//	  "rules": [
//	    {"name": "sessions", "action": "deny", "match": "prefix", "pattern": "session:"},
//	    {"name": "menu", "action": "allow", "match": "exact", "pattern": "menu", "ttl": "1m"}
//	  ],
//	  "cache": {"bytes": 33554432, "ttl": "2s"}
//	}
//
// Fields are those of [Config]. What a document leaves out has its default. A
// document is taken as a whole or not at all: one that has an unknown field or
// a value out of range changes nothing, and its error is kept for those who
// look, in [Status]. A document that is removed has the same effect as {}.
//
// A [Follower] follows the document of one application in a [Source].
package live
