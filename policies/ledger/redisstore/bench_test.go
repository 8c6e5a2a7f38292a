package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// canned answers scripts as a reservation that is admitted, without a server.
type canned struct{}

// DialHook implements redis.Hook.
func (canned) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (canned) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		const now = int64(1795386000000)
		const ceilings = 4 // of the plan
		call := []any{int64(0), int64(0), int64(0)}
		for range ledger.Dimensions + 3*ceilings {
			call = append(call, int64(430000))
		}
		cmd.(*redis.Cmd).SetVal([]any{int64(0), now, int64(17), now, int64(1), int64(1), int64(1), call})
		return nil
	}
}

// ProcessPipelineHook implements redis.Hook.
func (canned) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// BenchmarkCreate measures the gateway's own cost of the steps of a create, without
// their way to Redis.
func BenchmarkCreate(b *testing.B) {
	client := redistest.Client(b, "127.0.0.1:1") // which is never called
	client.AddHook(canned{})
	l := ledger.Ledger{Store: redisstore.New(client, "tg:spend:", nil)}
	plan := &ledger.Plan{
		Org: ledger.Budget{PerMonth: 1e12, Pods: 1e6}, Teams: map[string]ledger.Budget{"research": {PerHour: 1e9}},
		Keys: map[string]ledger.Budget{"ann": {GPUs: 100}},
	}
	r := ledger.Reservation{
		Hold: "01KAMZ7QJ7D0V7RZ3PX1D3V0C5", Kind: "pod", Owner: ledger.Owner{Team: "research", Key: "ann"},
		Intent:   &ledger.IntentRecord{Org: "acme", Fingerprint: "w1", Lookalike: "l1", Response: "a-", Intent: "01KAMZ7QJ7D0V7RZ3PX1D3V0C5", Row: "{}", Owner: "ann"},
		After:    ledger.Amounts{ledger.Burn: 430000, ledger.GPUs: 1, ledger.Pods: 1},
		Metadata: ledger.Metadata{Operation: "createPod", Decision: "01KAMZ7QJ7D0V7RZ3PX1D3V0C6", Name: "run-1", Description: "0123456789abcdef"},
	}
	s := ledger.Settlement{End: ledger.Commit, Hold: r.Hold, Kind: r.Kind, Resource: "p1", Owner: r.Owner, Amounts: r.After, Metadata: r.Metadata}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Reserve(b.Context(), "acme", plan, r); err != nil {
			b.Fatal(err)
		}
		if err := l.Settle(b.Context(), "acme", &s); err != nil {
			b.Fatal(err)
		}
	}
}
