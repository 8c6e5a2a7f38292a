package ratelimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

func TestHeaders(t *testing.T) {
	minute := ratelimit.Window{Name: "minute", Limit: 60, Remaining: 59, Size: time.Minute, Reset: 11001 * time.Millisecond}
	for _, tt := range []struct {
		name string
		in   ratelimit.Decision
		want http.Header
	}{
		{
			name: "exempt",
			in:   ratelimit.Decision{Allowed: true, Source: ratelimit.SourceNone},
			want: http.Header{},
		},
		{
			name: "one window, seconds rounded up",
			in:   ratelimit.Decision{Allowed: true, Windows: []ratelimit.Window{minute}},
			want: http.Header{"Ratelimit": {`"minute";r=59;t=12`}, "Ratelimit-Policy": {`"minute";q=60;w=60`}},
		},
		{
			name: "refused at the very end of a window",
			in:   ratelimit.Decision{RetryAfter: time.Millisecond},
			want: http.Header{"Retry-After": {"1"}},
		},
		{
			name: "refused without a time",
			in:   ratelimit.Decision{},
			want: http.Header{"Retry-After": {"1"}},
		},
		{
			name: "refused for a day",
			in:   ratelimit.Decision{RetryAfter: 24*time.Hour - time.Nanosecond},
			want: http.Header{"Retry-After": {"86400"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(http.Header)
			tt.in.WriteHeaders(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeadersAreStructuredFields compares headers written by hand with a library
// for RFC 9651, which writes lists in the one canonical way.
func TestHeadersAreStructuredFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := ratelimit.Decision{Allowed: true}
		quota, name := rapid.Int64Range(0, ratelimit.MaxQuota), rapid.StringMatching(`[!-z|~]{1,8}`)
		for i := range rapid.IntRange(1, ratelimit.Windows).Draw(t, "windows") {
			size := ratelimit.WindowSize(i)
			d.Windows = append(d.Windows, ratelimit.Window{
				Name: name.Draw(t, "name"), Limit: quota.Draw(t, "limit"), Remaining: quota.Draw(t, "remaining"),
				Size: size, Reset: time.Duration(rapid.Int64Range(0, int64(size)).Draw(t, "reset")),
			})
		}
		h := make(http.Header)
		d.WriteHeaders(h)
		var policy, state httpsfv.List
		for _, w := range d.Windows {
			p := httpsfv.NewItem(w.Name)
			p.Params.Add("q", w.Limit)
			p.Params.Add("w", int64(w.Size.Seconds()))
			policy = append(policy, p)
			s := httpsfv.NewItem(w.Name)
			s.Params.Add("r", w.Remaining)
			s.Params.Add("t", (w.Reset.Milliseconds()+1000)/1000)
			if w.Reset%time.Second == 0 {
				s.Params.Add("t", int64(w.Reset/time.Second))
			}
			state = append(state, s)
		}
		for name, list := range map[string]httpsfv.List{"RateLimit-Policy": policy, "RateLimit": state} {
			want, err := httpsfv.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Get(name); got != want {
				t.Errorf("%s = %s, want %s", name, got, want)
			}
		}
	})
}

func BenchmarkHeaders(b *testing.B) {
	d := ratelimit.Decision{Allowed: true}
	for i := range ratelimit.Windows {
		d.Windows = append(d.Windows, ratelimit.Window{
			Name: ratelimit.WindowName(i), Limit: 50_000, Remaining: 49_999,
			Size: ratelimit.WindowSize(i), Reset: 30 * time.Second,
		})
	}
	h := make(http.Header)
	b.ReportAllocs()
	for b.Loop() {
		d.WriteHeaders(h)
	}
}
