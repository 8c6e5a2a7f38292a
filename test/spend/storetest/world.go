package storetest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// World is a platform, a gateway and a receiver of events for a ledger under test. Tests embed it and replace methods.
type World struct {
	// Found are the resources of every organisation, Budgets its plan, nil for none.
	Found   []ledger.PlatformResource
	Budgets *ledger.Plan
	// Orgs have budgets. Alive are the names of the gateways.
	Orgs, Alive []string
}

// Around is the world of a ledger.
type Around interface {
	ledger.Platform
	ledger.Gateway
	ledger.Events
}

// Deps returns dependencies in a world, with the clock of the system and without logs.
func Deps(s ledger.Store, w Around) ledger.Deps {
	return ledger.Deps{
		Store: s, Platform: w, Gateway: w, Events: w, Logger: slog.New(slog.DiscardHandler), Now: time.Now, SingleGateway: true, History: &ledger.History{Store: s, Retention: ledger.DefaultConfig().History},
		Interval: time.Minute, CallTimeout: time.Minute, Unresolved: time.Minute, PollInterval: 100 * time.Millisecond,
	}
}

// List implements ledger.Platform.
func (w *World) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	return w.Found, nil
}

// Get implements ledger.Platform.
func (*World) Get(context.Context, string, operation.Kind, string) (*ledger.PlatformResource, error) {
	return nil, errors.New("502")
}

// EndedSandbox implements ledger.Platform.
func (*World) EndedSandbox(context.Context, string, string) (*ledger.PlatformResource, error) {
	return nil, nil //nolint:nilnil // no sandbox has ended
}

// Bills implements ledger.Platform.
func (*World) Bills(context.Context, string, time.Time, time.Time) ([]ledger.Bill, error) {
	return nil, nil
}

// JobOutcome implements ledger.Platform.
func (*World) JobOutcome(context.Context, string, *ledger.Hold) (*ledger.Settlement, error) {
	return nil, nil //nolint:nilnil // nothing is known of the job
}

// StopPod implements ledger.Platform.
func (*World) StopPod(context.Context, string, string) (a ledger.Amounts, err error) { return a, nil }

// Delete implements ledger.Platform.
func (*World) Delete(context.Context, string, operation.Kind, string) error { return nil }

// Plan implements ledger.Gateway.
func (w *World) Plan(string) *ledger.Plan { return w.Budgets }

// Budgeted implements ledger.Gateway.
func (w *World) Budgeted() []string { return w.Orgs }

// Peers implements ledger.Gateway.
func (w *World) Peers() []string { return w.Alive }

// Dead implements ledger.Gateway.
func (*World) Dead(context.Context, string) (silent time.Duration, dead bool) { return 0, false }

// Claim implements ledger.Gateway.
func (*World) Claim(context.Context, string, *ledger.PlatformResource, *ledger.Hold) (bool, error) {
	return true, nil
}

// Forget implements ledger.Gateway.
func (*World) Forget(context.Context, string, ...string) error { return nil }

// RecordedOwners implements ledger.Gateway.
func (*World) RecordedOwners(context.Context, string, []string) map[string]ledger.Ownership {
	return nil
}

// Observed implements ledger.Events.
func (*World) Observed(context.Context, string, *ledger.Plan, *ledger.State) {}

// PassEnded implements ledger.Events.
func (*World) PassEnded(context.Context, string, *ledger.Report, error) {}

// Announce implements ledger.Events. Every notice is delivered at once.
func (*World) Announce(_ context.Context, _ *ledger.Cause, _ *ledger.Record, ended func(error)) {
	ended(nil)
}

// Stopped implements ledger.Events.
func (*World) Stopped(context.Context, *ledger.Cause, *ledger.Record) {}

// Released implements ledger.Events.
func (*World) Released(string, *ledger.Hold) {}

// RestoredLate implements ledger.Events.
func (*World) RestoredLate(context.Context, string, []ledger.Hold) {}
