// Package kafka carries reports by Kafka.
//
// A report is divided by application and key, as many ways as the topic has
// partitions, into one record for each partition that it has keys of. Servers
// are a consumer group, so that Kafka gives each partition to one of them: all
// counts of a key meet in one server, and servers scale with partitions. When
// partitions are added, keys move to other servers within a minute, and it
// takes one window until those have seen a whole one of them.
//
// # How losses are counted
//
// Offsets of a partition have no gaps, so the reports between the offset that
// the group has committed and the first that there is are lost: they were
// removed before a server read them. That needs a topic that is not compacted
// and that nobody writes transactions to.
package kafka
