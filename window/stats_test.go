package window

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJSON(t *testing.T) {
	stats := Stats{1, 2, 3, 4, 5, -6, 7, 8, 9, 10, true, 11}
	data, err := json.Marshal(stats)
	require.NoError(t, err)
	require.Equal(t, `{"total":1,"weight":2,"late":3,"too_late":4,"turns":5,"slot":-6,"tracked":7,"admissions":8,`+
		`"evictions":9,"ignored":10,"saturated":true,"bytes":11}`, string(data))
	var back Stats
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, stats, back)

	h := must(t, Config[string]{K: 1})
	h.AddAt(time.Unix(0, 0), "a", 5)
	data, err = json.Marshal(h.TopAt(time.Unix(0, 0), 0))
	require.NoError(t, err)
	require.Equal(t, `[{"key":"a","count":5,"lower":5,"upper":5}]`, string(data))
}
