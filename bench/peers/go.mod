module github.com/heavykeeper-go/heavykeeper/bench/peers

go 1.26.0

require (
	github.com/go-kratos/aegis v0.2.0
	github.com/heavykeeper-go/heavykeeper v0.0.0
	github.com/tylertreat/BoomFilters v0.0.0-20251001182300-5b3723cc64ae
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/d4l3k/messagediff v1.2.1 // indirect
	github.com/golang/groupcache v0.0.0-20210331224755-41bb18bfe9da // indirect
	github.com/twmb/murmur3 v1.1.6 // indirect
	golang.org/x/exp v0.0.0-20261113113407-e3970619a1a4 // indirect
)

replace github.com/heavykeeper-go/heavykeeper => ../..
