package ledger

import (
	"testing"
	"time"
)

// A budget runs out within the day on which the forecast reaches the limit.
func TestTimeWhenABudgetRunsOut(t *testing.T) {
	t.Parallel()
	const usd = 1_000_000
	now := time.Date(2026, 11, 29, 6, 0, 0, 0, time.UTC)
	midnight := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	days := []time.Time{midnight, midnight.AddDate(0, 0, 1)}
	for name, tt := range map[string]struct {
		limit, accrued int64
		want           time.Time
	}{
		"already used up":             {10 * usd, 10 * usd, now},
		"today":                       {20 * usd, 11 * usd, now.Add(9 * time.Hour)},
		"tomorrow":                    {40 * usd, 10 * usd, midnight.Add(12 * time.Hour)},
		"at the last moment of today": {28 * usd, 10 * usd, midnight.Add(-time.Millisecond)},
		"not in this period":          {60 * usd, 10 * usd, time.Time{}},
	} {
		got := usedUp(tt.limit, tt.accrued, usd, nil, days, now) // 1 USD per hour
		if d := got.Sub(tt.want); d < -time.Second || d > time.Second || got.Day() != tt.want.Day() {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
