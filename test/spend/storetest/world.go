package storetest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// World is a platform, a gateway and a receiver of events for a ledger under test. Tests embed it and replace methods.
type World struct {
	// Found are the resources of every organisation, Budgets its plan, nil for none.
	Found   []spend.PlatformResource
	Budgets *spend.Plan
	// Orgs have budgets. Alive are the names of the gateways.
	Orgs, Alive []string
}

// Around is the world of a ledger.
type Around interface {
	spend.Platform
	spend.Gateway
	spend.Events
}

// Deps returns dependencies in a world, with the clock of the system and without logs.
func Deps(s spend.Store, w Around) spend.Deps {
	return spend.Deps{
		Store: s, Platform: w, Gateway: w, Events: w, Logger: slog.New(slog.DiscardHandler), Now: time.Now, SingleGateway: true, History: &spend.History{Store: s, Retention: spend.DefaultConfig().History},
		Interval: time.Minute, CallTimeout: time.Minute, Unresolved: time.Minute, PollInterval: 100 * time.Millisecond,
	}
}

// List implements spend.Platform.
func (w *World) List(context.Context, string, func(operation.Kind) bool) ([]spend.PlatformResource, error) {
	return w.Found, nil
}

// Get implements spend.Platform.
func (*World) Get(context.Context, string, operation.Kind, string) (*spend.PlatformResource, error) {
	return nil, errors.New("502")
}

// EndedSandbox implements spend.Platform.
func (*World) EndedSandbox(context.Context, string, string) (*spend.PlatformResource, error) {
	return nil, nil //nolint:nilnil // no sandbox has ended
}

// Bills implements spend.Platform.
func (*World) Bills(context.Context, string, time.Time, time.Time) ([]spend.Bill, error) {
	return nil, nil
}

// JobOutcome implements spend.Platform.
func (*World) JobOutcome(context.Context, string, *spend.Hold) (*spend.Settlement, error) {
	return nil, nil //nolint:nilnil // nothing is known of the job
}

// StopPod implements spend.Platform.
func (*World) StopPod(context.Context, string, string) (a spend.Amounts, err error) { return a, nil }

// Delete implements spend.Platform.
func (*World) Delete(context.Context, string, operation.Kind, string) error { return nil }

// Plan implements spend.Gateway.
func (w *World) Plan(string) *spend.Plan { return w.Budgets }

// Budgeted implements spend.Gateway.
func (w *World) Budgeted() []string { return w.Orgs }

// Peers implements spend.Gateway.
func (w *World) Peers() []string { return w.Alive }

// Dead implements spend.Gateway.
func (*World) Dead(context.Context, string) (silent time.Duration, dead bool) { return 0, false }

// Claim implements spend.Gateway.
func (*World) Claim(context.Context, string, *spend.PlatformResource, *spend.Hold) (bool, error) {
	return true, nil
}

// Forget implements spend.Gateway.
func (*World) Forget(context.Context, string, ...string) error { return nil }

// RecordedOwners implements spend.Gateway.
func (*World) RecordedOwners(context.Context, string, []string) map[string]spend.Ownership {
	return nil
}

// Observed implements spend.Events.
func (*World) Observed(context.Context, string, *spend.Plan, *spend.State) {}

// PassEnded implements spend.Events.
func (*World) PassEnded(context.Context, string, *spend.Report, error) {}

// Announce implements spend.Events. Every notice is delivered at once.
func (*World) Announce(_ context.Context, _ *spend.Cause, _ *spend.Record, ended func(error)) {
	ended(nil)
}

// Stopped implements spend.Events.
func (*World) Stopped(context.Context, *spend.Cause, *spend.Record) {}

// Released implements spend.Events.
func (*World) Released(string, *spend.Hold) {}

// RestoredLate implements spend.Events.
func (*World) RestoredLate(context.Context, string, []spend.Hold) {}
