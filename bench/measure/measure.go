// Package measure compares the answers of a top-K algorithm with the truth.
package measure

import (
	"math"
	"slices"
)

// Item is a key that an algorithm reports, with the weight it gives it.
type Item[K comparable] struct {
	Key   K
	Count uint64
}

// Truth is the exact weight of every key of a stream.
type Truth[K comparable] struct {
	Counts map[K]uint64
	Total  uint64
	ranked []uint64 // all counts, descending
}

// Count returns the truth about a stream. weights may be nil: then each event
// weighs 1.
func Count[K comparable](keys []K, weights []uint32) *Truth[K] {
	t := &Truth[K]{Counts: map[K]uint64{}}
	for i, key := range keys {
		w := uint64(1)
		if weights != nil {
			w = uint64(weights[i])
		}
		t.Counts[key] += w
		t.Total += w
	}
	for _, n := range t.Counts {
		t.ranked = append(t.ranked, n)
	}
	slices.SortFunc(t.ranked, func(a, b uint64) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	return t
}

// Kth returns the count of the key of rank k, 1 being the heaviest, or the
// smallest count where there are fewer keys.
func (t *Truth[K]) Kth(k int) uint64 {
	if len(t.ranked) == 0 {
		return 0
	}
	return t.ranked[min(k, len(t.ranked))-1]
}

// Over returns the number of keys that weigh at least threshold.
func (t *Truth[K]) Over(threshold uint64) int {
	n := 0
	for n < len(t.ranked) && t.ranked[n] >= threshold {
		n++
	}
	return n
}

// Accuracy is how well a list of heaviest keys and their counts fit the truth.
type Accuracy struct {
	// Precision is the share of the K keys asked for that were found. A
	// reported key is correct if its true count is at least that of the true
	// K-th key: where keys tie for the last place, each of them is as good.
	// Short lists count what they lack as wrong, so this is the recall of the
	// top K too.
	Precision float64

	// ARE is the average relative error, the mean of |reported - true| / true
	// over the reported keys, and AAE the average absolute error. Both follow
	// the HeavyKeeper paper: right or wrong, each key that is reported counts,
	// and those that are missing do not.
	ARE, AAE float64
}

// Of returns the accuracy of a reported list of the k heaviest keys. Of a
// longer list the rest is ignored; a key listed twice is correct once.
func (t *Truth[K]) Of(reported []Item[K], k int) Accuracy {
	reported = reported[:min(k, len(reported))]
	correct := t.correct(reported, t.Kth(k))
	a := t.errors(reported)
	a.Precision = 1
	if asked := min(k, len(t.Counts)); asked > 0 {
		a.Precision = float64(correct) / float64(asked)
	}
	return a
}

// correct returns how many distinct keys of a list weigh at least threshold.
func (t *Truth[K]) correct(reported []Item[K], threshold uint64) int {
	listed := make(map[K]bool, len(reported))
	correct := 0
	for _, item := range reported {
		if t.Counts[item.Key] >= threshold && !listed[item.Key] {
			correct++
		}
		listed[item.Key] = true
	}
	return correct
}

// errors returns the mean errors of a list. Keys that are not of the stream
// have a relative error of 1, since their true count is 0.
func (t *Truth[K]) errors(reported []Item[K]) (a Accuracy) {
	for _, item := range reported {
		truth := float64(t.Counts[item.Key])
		off := math.Abs(float64(item.Count) - truth)
		a.AAE += off / float64(len(reported))
		if truth > 0 {
			off /= truth
		} else {
			off = 1
		}
		a.ARE += off / float64(len(reported))
	}
	return a
}

// Threshold is how well a list fits a search for all keys that weigh at least
// a share of the total.
type Threshold struct {
	Precision float64 // share of the reported keys that reach the threshold
	Recall    float64 // share of the keys that reach it that are reported
	ARE       float64 // of the reported keys
}

// HeavyHitters returns how well those of the listed keys whose count reaches
// threshold are the keys that truly do. An empty list has precision 1.
func (t *Truth[K]) HeavyHitters(listed []Item[K], threshold uint64) Threshold {
	var reported []Item[K]
	for _, item := range listed {
		if item.Count >= threshold {
			reported = append(reported, item)
		}
	}
	correct := t.correct(reported, threshold)
	h := Threshold{Precision: 1, Recall: 1, ARE: t.errors(reported).ARE}
	if len(reported) > 0 {
		h.Precision = float64(correct) / float64(len(reported))
	}
	if n := t.Over(threshold); n > 0 {
		h.Recall = float64(correct) / float64(n)
	}
	return h
}
