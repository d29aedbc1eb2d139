package measure

import (
	"math"
	"testing"
)

// a 5, b 3, c 3, d 1.
func truth() *Truth[string] {
	return Count([]string{"a", "b", "c", "d", "a"}, []uint32{2, 3, 3, 1, 3})
}

func TestOf(t *testing.T) {
	type list = []Item[string]
	for name, test := range map[string]struct {
		list list
		k    int
		want Accuracy
	}{
		"exact":           {list{{"a", 5}, {"b", 3}}, 2, Accuracy{1, 0, 0}},
		"tie, either key": {list{{"a", 5}, {"c", 3}}, 2, Accuracy{1, 0, 0}},
		"wrong key":       {list{{"a", 5}, {"d", 3}}, 2, Accuracy{0.5, 1, 1}},
		"off by one":      {list{{"a", 4}, {"b", 3}}, 2, Accuracy{1, 0.1, 0.5}},
		"short":           {list{{"a", 5}}, 2, Accuracy{0.5, 0, 0}},
		"twice the same":  {list{{"a", 5}, {"a", 5}}, 2, Accuracy{0.5, 0, 0}},
		"too long":        {list{{"a", 5}, {"b", 3}, {"d", 9}}, 2, Accuracy{1, 0, 0}},
		"unknown key":     {list{{"x", 7}}, 1, Accuracy{0, 1, 7}},
		"fewer keys than": {list{{"a", 5}, {"b", 3}, {"c", 3}, {"d", 1}}, 9, Accuracy{1, 0, 0}},
		"empty":           {nil, 2, Accuracy{0, 0, 0}},
	} {
		got := truth().Of(test.list, test.k)
		if math.Abs(got.Precision-test.want.Precision)+math.Abs(got.ARE-test.want.ARE)+math.Abs(got.AAE-test.want.AAE) > 1e-12 {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestHeavyHitters(t *testing.T) {
	got := truth().HeavyHitters([]Item[string]{{"a", 5}, {"d", 4}, {"b", 2}}, 3)
	want := Threshold{Precision: 0.5, Recall: 1.0 / 3, ARE: 1.5}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
