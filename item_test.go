package heavykeeper

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestItemJSON(t *testing.T) {
	items := []Item[string]{{"a\"b", Estimate{1, 0, math.MaxUint64}}, {"", Estimate{}}}
	data, err := json.Marshal(items)
	require.NoError(t, err)
	require.Equal(t, `[{"key":"a\"b","count":1,"lower":0,"upper":18446744073709551615},`+
		`{"key":"","count":0,"lower":0,"upper":0}]`, string(data))
	var back []Item[string]
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, items, back)

	require.Equal(t, `{"key":-7,"count":3,"lower":2,"upper":4}`, string(must(json.Marshal(Item[int]{-7, Estimate{3, 2, 4}}))))
	type pair struct {
		Host string `json:"host"`
		Port int    `json:"port"`
	}
	require.Equal(t, `{"key":{"host":"h","port":80},"count":1,"lower":1,"upper":1}`,
		string(must(json.Marshal(Item[pair]{pair{"h", 80}, Estimate{1, 1, 1}}))))
	require.Equal(t, `{"count":1,"lower":2,"upper":3}`, string(must(json.Marshal(Estimate{1, 2, 3}))))
}

func TestStatsJSON(t *testing.T) {
	stats := Stats{1, 2, 3, 4, 5, 6, 7, true, false, 8}
	data, err := json.Marshal(stats)
	require.NoError(t, err)
	require.Equal(t, `{"total":1,"weight":2,"tracked":3,"tracked_weight":4,"admissions":5,"evictions":6,"ignored":7,`+
		`"saturated":true,"exact":false,"bytes":8}`, string(data))
	var back Stats
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, stats, back)
}
