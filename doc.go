// Package heavykeeper finds the most frequent keys of a stream, its top K or
// hot keys, in fixed memory and with bounds on every count.
//
//	hot, err := heavykeeper.New(heavykeeper.Config[string]{K: 10})
//	if err != nil {
//		log.Fatal(err)
//	}
//	for key := range keys { // from any number of goroutines
//		hot.Add(key)
//	}
//	for _, item := range hot.Top(3) {
//		fmt.Println(item.Key, item.Count, item.Lower, item.Upper)
//	}
//
// [HeavyKeeper] is safe for concurrent use and scales with the processors.
// [Sketch] is one stripe of it, for a single goroutine. Package window does the
// same over a sliding window of time.
//
// # Guarantees
//
// For every key, tracked or not, the true weight is at least Lower and at most
// Upper. What seem the K heaviest keys, and a quarter more, are tracked: counted
// exactly from the moment they are admitted, with what the sketch knew of them until
// then as the only uncertainty. Until a (K+1)-th distinct key comes everything
// is exact, and [Stats] says so. The one exception to the bounds is two keys
// that share a cell, 32 bits of fingerprint and thus by chance about 1 in 2^32
// of pairs that meet.
//
// Memory does not grow with the number of distinct keys, and updates allocate
// nothing in the long run but a copy of an admitted string. Results are copies.
//
// # How it works
//
// Each of m hash rows has w cells. A cell has an owner, a key known by its
// fingerprint, and counts two weights: the owner's, and as error what all other
// keys brought. So a row is a Count-Min sketch (the two together bound a weight
// from above) and a HeavyKeeper (the owner's count bounds it from below). A key
// that owns none of its cells challenges the one of smallest count c: each
// occurrence takes one off it with probability Base^-c and moves it to the
// error; at 0 the challenger takes over. Mice leave at once and elephants stay.
// A key whose count exceeds the smallest tracked one is admitted, and lifted
// out of the rows; the one it displaces is put back.
//
// # Cost
//
// An update of a tracked key is one look-up and one addition. Any other visits
// Rows cells. A weight n costs O(log n) steps. Reading K keys sorts them.
//
// # Choosing parameters
//
// Give K, the number of keys to report. The default Width is 9 K, at least 256,
// so that a sketch takes about (12 x Rows x 9 + 60) x K = 492 K bytes for
// integer keys. A HeavyKeeper takes that once a stripe. As in a Count-Min
// sketch an interval is no wider than e/Width of the untracked weight for a
// share of 1 - e^-Rows of keys (98 % by default); it is much narrower for the
// average one. TestSizing prints these figures; the last column is the average
// over all keys of a Zipf 1.0 stream of 2^20 events, in share of the stream.
//
//	    K   memory    e/Width   on average
//	   10    13 KB     1.06 %      0.19 %
//	  100    50 KB     0.30 %     0.043 %
//	 1000   0.5 MB    0.030 %    0.0023 %
//	10000   5.0 MB   0.0030 %   0.00002 %
//
// Width may be a good deal smaller where memory counts. TestAccuracy of package
// bench holds precision to 0.98 and the relative error to 1 % on Zipf streams of
// exponents from 0.8 up, with 96 KB of cells at K = 1000, where the default is
// 432, and 16 KB at K = 100.
//
// Alpha is the share of every weight that one call of Fade takes away. After t
// fades an occurrence counts (1-Alpha)^t: half after ln 2 / Alpha fades. Who
// fades once a second takes 0.01 to 0.05, a half-life of 69 to 14 seconds.
//
// Weights are for counting bytes or costs; any unit will do, as the decay
// measures counts in multiples of the mean weight. But the cells of untracked
// keys hold at most 2^32-1, so take KiB where even the K-th key has gigabytes.
//
// # Saving
//
// MarshalBinary encodes a sketch or HeavyKeeper, while it goes on counting if
// need be, and UnmarshalBinary restores it in full: answers, bounds, and on a
// machine of the same architecture the future. It trusts nothing that it reads.
// The example of [HeavyKeeper.MarshalBinary] writes a file that survives a
// crash at any moment. Keys must be strings, integers, or of a type with a
// binary encoding of its own, which needs a Config.Hash: by default it is hashed
// with a seed of the process, and what is saved could not be read by another.
//
// # Security
//
// Keys that come from strangers may be chosen to do harm. The default hash of
// strings is fast and public: whoever knows the code can make any number of
// strings that share all 64 bits with a key of their choice, whatever Seed is,
// and the sketch takes them for that key until they are tracked. So a key that
// never came is reported, or one that is hot is robbed of its count; and where
// Seed is known too, some dozens of keys keep one that should be first out for
// ever. TestAttackInflates, TestAttackEvicts, TestAttackSinks and
// TestAttackSlows do these things, and fail to against the two remedies:
//
//   - [KeyedHash] with a seed of hash/maphash: for what lives and dies with the
//     process.
//   - [SipHash] with 128 secret bits: for what is saved, or merges with other
//     processes, which then must have the same secret.
//
// Take one of them wherever answers have consequences (who is blocked, what is
// cached, what is billed) and keys come from outside. The default for integers
// is a mixer under Seed: with a secret, random Seed nobody can aim at a cell by
// computing, but it is no cryptography. Other types are keyed by default.
// Bounds hold against chosen keys only with a keyed hash. Keep secrets and
// Seed out of logs, and encodings too: they hold Seed and the hashes of keys.
//
// An attacker can cost no memory: there are no more than K + K/4 + 1 tracked
// keys a stripe, and nothing else grows. But those are as long as they come, so
// limit the length of strings before you count them. Nor can he cost time with
// a keyed hash: an update visits Rows cells and O(1) words of the index.
// A checksum protects encodings from accidents, not from forgery: a forged one
// can say anything of counts, though not break the sketch, nor make decoding
// slow (TestAttackSlowsDecoding).
//
// What remains is to send many keys. A flood of keys that come once each
// widens the bounds of the others by its share in cells, e/Width of it, and
// makes it harder for new ones to get in. TestFlood prints what it does to
// K = 100 on a Zipf 1.0 stream of 2^20 events, with all defaults:
//
//	share of the flood     0 %     50 %    80 %    90 %    95 %
//	precision             1.00     1.00    1.00    1.00    0.99
//	width of bounds      0.002    0.007   0.028   0.093   0.289
//
// Width is Upper - Lower in share of the count, averaged over the 100 heaviest
// keys. It narrows with a larger Width.
//
// # References
//
//   - Yang, Gong, Zhang, Zou, Shi, Li: HeavyKeeper: An Accurate Algorithm for
//     Finding Top-k Elephant Flows. USENIX ATC 2018; extended in IEEE/ACM
//     Transactions on Networking, 2019.
//   - Cormode, Muthukrishnan: An Improved Data Stream Summary: The Count-Min
//     Sketch and its Applications. Journal of Algorithms, 2005.
//   - Cormode, Shkapenyuk, Srivastava, Xu: Forward Decay: A Practical Time
//     Decay Model for Streaming Systems. ICDE 2009.
//   - Aumasson, Bernstein: SipHash: A Fast Short-Input PRF. INDOCRYPT 2012.
package heavykeeper
