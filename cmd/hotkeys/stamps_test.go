package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStamps(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ layout, text, want string }{
		{"rfc3339", "2026-07-01T12:00:00.25+02:00", "2026-07-01T12:00:00.25+02:00"},
		{"rfc3339", "2026-07-01 12:00:00", ""},
		{"clf", "[17/May/2015:10:05:03 +0000]", "2015-05-17T10:05:03Z"},
		{"syslog", "Jan  2 10:00:00", "2026-01-02T10:00:00Z"},
		{"syslog", "Dec 31 10:00:00", "2025-12-31T10:00:00Z"},
		{"syslog", "Feb 30 10:00:00", ""},
		{"2006-01-02 15:04:05", "2026-07-01 12:00:00", "2026-07-01T12:00:00Z"},
		{"2006-01-02", "0001-01-01", ""},
		{"2006-01-02", "9999-01-01", ""},
		{"unix", "1339518083.107412", "2012-06-12T16:21:23.107412Z"},
		{"unix", "1339518083", "2012-06-12T16:21:23Z"},
		{"unix", "-1.25", "1969-12-31T23:59:58.75Z"},
		{"unix", "-0.25", "1969-12-31T23:59:59.75Z"},
		{"unix", "9223372036854775807", ""},
		{"unix", "9223372036854775808", ""},
		{"unix", "1.", "1970-01-01T00:00:01Z"},
		{"unix", "1.x", ""},
		{"unix", ".5", ""},
		{"unix", "", ""},
		{"unixms", "1339518083107", "2012-06-12T16:21:23.107Z"},
		{"unixms", "-1", "1969-12-31T23:59:59.999Z"},
		{"unixus", "1339518083107412", "2012-06-12T16:21:23.107412Z"},
		{"unixns", "1339518083107412001", "2012-06-12T16:21:23.107412001Z"},
	} {
		s := newStamps(test.layout, func() time.Time { return now })
		for range 2 { // read, and remembered
			got, ok := s.read([]byte(test.text))
			require.Equal(t, test.want != "", ok, "%s %s", test.layout, test.text)
			if ok {
				require.Equal(t, test.want, got.Format(time.RFC3339Nano), "%s %s", test.layout, test.text)
			}
		}
		_, ok := s.read([]byte("other"))
		require.False(t, ok)
	}
}

// The year of times that have none is told by the clock as it is by then.
func TestStampsWithoutYear(t *testing.T) {
	var now time.Time
	s := newStamps("syslog", func() time.Time { return now })
	for _, test := range []struct{ now, text, want string }{
		{"2026-12-31T23:59:50Z", "Dec 31 23:59:49", "2026-12-31T23:59:49Z"},
		{"2026-12-31T23:59:50Z", "Jan  1 00:00:10", "2027-01-01T00:00:10Z"}, // a clock ahead
		{"2027-01-01T00:00:01Z", "Jan  1 00:00:00", "2027-01-01T00:00:00Z"}, // a year begins
		{"2027-01-01T00:00:01Z", "Dec 31 23:59:59", "2026-12-31T23:59:59Z"},
		{"2027-06-01T00:00:00Z", "Jun  2 00:00:00", "2027-06-02T00:00:00Z"},
		{"2027-06-01T00:00:00Z", "Jun  2 00:00:01", "2026-06-02T00:00:01Z"},
		{"2028-03-01T00:00:00Z", "Feb 29 12:00:00", "2028-02-29T12:00:00Z"},
		{"2028-02-01T00:00:00Z", "Feb 29 12:00:01", "2024-02-29T12:00:01Z"},
		{"2027-03-01T00:00:00Z", "Feb 29 12:00:02", "2024-02-29T12:00:02Z"},
		{"2104-01-01T00:00:00Z", "Feb 29 12:00:03", "2096-02-29T12:00:03Z"},
		{"2027-03-01T00:00:00Z", "Mar  1 12:00:02", "2027-03-01T12:00:02Z"},
	} {
		var err error
		now, err = time.Parse(time.RFC3339, test.now)
		require.NoError(t, err)
		got, ok := s.read([]byte(test.text))
		require.True(t, ok, "%+v", test)
		require.Equal(t, test.want, got.Format(time.RFC3339), "%+v", test)
	}
}

func TestAfter(t *testing.T) {
	for _, test := range []struct{ t, d, want int64 }{
		{0, 7, 7}, {6, 7, 7}, {7, 7, 14}, {-1, 7, 0}, {-7, 7, 0}, {-8, 7, -7}, {1e18, 1, 1e18 + 1},
	} {
		require.Equal(t, test.want, after(time.Unix(0, test.t), time.Duration(test.d)).UnixNano(), "%+v", test)
	}
}
