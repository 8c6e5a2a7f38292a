package explain

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/once/intent"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// intents is a filter.Intents that keeps nothing: every request is the first.
type intents struct{ *DryRun }

// Wish implements filter.Intents.
func (intents) Wish(string, string, string) intent.Wish { return intent.Wish{} }

// Keyed implements filter.Intents.
func (intents) Keyed(string, string, string) intent.Wish { return intent.Wish{} }

// Like implements filter.Intents.
func (intents) Like(string, string) string { return "" }

// Try implements filter.Intents.
func (r intents) Try(context.Context, *intent.Wish, *intent.Intent, []string) (intent.Seen, error) {
	return intent.Seen{Now: r.Now()}, nil
}

// Note implements filter.Intents.
func (intents) Note(*intent.Wish, *intent.Intent, []string) *spend.Note { return nil }

// Come implements filter.Intents.
func (intents) Come(context.Context, *intent.Wish, string) func() { return func() {} }

// Beside implements filter.Intents.
func (intents) Beside(*intent.Wish) []string { return nil }

// Begin implements filter.Intents.
func (intents) Begin(context.Context, *intent.Wish, intent.Intent, time.Time) {}

// MaySend implements filter.Intents.
func (intents) MaySend(string) bool { return true }

// Fate implements filter.Intents.
func (intents) Fate(context.Context, string, *intent.Intent, time.Time) intent.Fate {
	return intent.There
}

// Abandoned implements filter.Intents.
func (intents) Abandoned(context.Context, *intent.Intent) bool { return false }

// Take implements filter.Intents.
func (intents) Take(context.Context, *intent.Wish, *intent.Intent, string) (intent.Intent, bool, error) {
	return intent.Intent{}, false, nil
}

// Claim implements filter.Intents.
func (intents) Claim(context.Context, *intent.Wish, *intent.Intent, string) (bool, error) {
	return true, nil
}

// End implements filter.Intents.
func (intents) End(context.Context, *intent.Wish, *intent.Intent, *intent.End) error { return nil }

// EndLate implements filter.Intents.
func (intents) EndLate(*intent.Wish, *intent.Intent, *intent.End) {}

// Ending implements filter.Intents.
func (intents) Ending(*intent.Wish, *intent.Intent, *intent.End) *spend.Ending { return nil }

// Ended implements filter.Intents.
func (intents) Ended(*intent.Intent, *intent.End) {}
