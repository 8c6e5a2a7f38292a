package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Kinds of changes in accrual.lua.
const (
	accrualAdd = iota
	accrualReset
	accrualMove
)

// AdjustAccrual implements ledger.Store.
func (s *Store) AdjustAccrual(ctx context.Context, org string, a *ledger.AccrualAdjustment) (ledger.AccrualOutcome, error) {
	kind, micro := int64(accrualAdd), a.Micro
	if a.Kind == ledger.Reset {
		kind = accrualReset
	}
	if a.Kind == ledger.Credit {
		micro = -micro
	}
	return s.changeAccrual(ctx, org, a.ID, s.known(org, kind, int64(a.Period.Index())+1, micro, ledger.AccrualRetention.Milliseconds()),
		a.Fingerprint(), a.Owner.Team, a.Owner.Key, encodeMetadata(a.Metadata()))
}

// MoveAccrual implements ledger.Store.
func (s *Store) MoveAccrual(ctx context.Context, org string, m *ledger.AccrualMove) (ledger.AccrualOutcome, error) {
	keep := ledger.AccrualRetention.Milliseconds()
	if m.Permanent {
		keep = 0
	}
	return s.changeAccrual(ctx, org, m.ID, s.known(org, accrualMove, 0, 0, keep), m.Fingerprint(), m.From, m.Key, m.To)
}

func (s *Store) changeAccrual(ctx context.Context, org, id string, args ...any) (ledger.AccrualOutcome, error) {
	keys := s.keys(org)
	if id != "" {
		keys = append(keys, s.prefix+"{"+org+"}:accrual:"+id)
	}
	reply, err := s.run(ctx, s.accrual, org, keys, args)
	if err != nil || len(reply.texts) != 1 {
		return ledger.AccrualOutcome{}, fmt.Errorf("change accrued cost: %w", cmp.Or(err, errReply))
	}
	n, err := split(reply.texts[0], 4)
	if err != nil {
		return ledger.AccrualOutcome{}, fmt.Errorf("change accrued cost: %w", err)
	}
	n = append(n, make([]int64, 10)...) // written by an earlier version, which kept only the first four
	return ledger.AccrualOutcome{
		Status:  ledger.AccrualStatus(reply.status),
		Change:  ledger.Accrued{Day: n[0], Month: n[1], Week: n[4], Quarter: n[5], Total: n[6]},
		Accrued: ledger.Accrued{Day: n[2], Month: n[3], Week: n[7], Quarter: n[8], Total: n[9]},
	}, nil
}
