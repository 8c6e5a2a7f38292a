package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
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
	keys := s.keys(org)
	if a.ID != "" {
		keys = append(keys, s.prefix+"{"+org+"}:accrual:"+a.ID)
	}
	return s.changeAccrual(ctx, org, keys, s.known(org, kind, int64(a.Period.Index())+1, micro, ledger.AccrualRetention.Milliseconds()),
		a.Fingerprint(), a.Owner.Team, a.Owner.Key, encodeMetadata(a.Metadata()))
}

// MoveAccrual implements ledger.Store.
func (s *Store) MoveAccrual(ctx context.Context, org string, m *ledger.AccrualMove) (ledger.AccrualOutcome, error) {
	transfers, err := json.Marshal(m.Transfers)
	if err != nil {
		return ledger.AccrualOutcome{}, err
	}
	a := m.Amounts
	return s.changeAccrual(ctx, org, s.keys(org, s.rolled(org)), s.known(org, accrualMove, a.Day, a.Week, a.Month, a.Quarter, a.Total),
		m.Version, m.From, m.Key, m.To, transfers)
}

func (s *Store) changeAccrual(ctx context.Context, org string, keys []string, args ...any) (ledger.AccrualOutcome, error) {
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
