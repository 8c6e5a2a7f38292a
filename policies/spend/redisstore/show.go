package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Show implements spend.Store. It reads everything in one step and writes nothing.
func (s *Store) Show(ctx context.Context, org string) (spend.State, error) {
	keys := s.keys(org)
	var clock *redis.TimeCmd
	var accounts, resources, holds *redis.MapStringStringCmd
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		accounts, resources, holds = p.HGetAll(ctx, keys[0]), p.HGetAll(ctx, keys[1]), p.HGetAll(ctx, keys[2])
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return spend.State{}, fmt.Errorf("show: %w: %w", spend.ErrUnavailable, err)
	}
	state := spend.State{Now: time.UnixMilli(clock.Val().UnixMilli()), Zone: s.zones.Of(org)}
	if err := s.decode(org, &state, accounts.Val(), resources.Val(), holds.Val()); err != nil {
		return spend.State{}, fmt.Errorf("show: %w", err)
	}
	state.Sort()
	return state, nil
}

func (s *Store) decode(org string, state *spend.State, accounts, resources, holds map[string]string) error {
	for name, text := range accounts {
		n, lines, err := decodeRecord(text)
		switch {
		case err != nil:
			return err
		case name == "" && len(n) == 3 && len(lines) == 1:
			at := position{n[0], n[1]}
			state.Complete = n[2] == 1 && !s.ahead(org, at)
		case name != "" && len(n) == 1+2*spend.Dimensions+6:
			state.Balances = append(state.Balances, spend.BalanceOf(scopeOf(name), n, state.Now, state.Zone))
		default:
			return errReply
		}
	}
	for id, text := range resources {
		r, err := decodeResource(id, text)
		if err != nil {
			return err
		}
		state.Resources = append(state.Resources, r)
	}
	for id, text := range holds {
		n, lines, err := decodeRecord(text)
		if err != nil || len(n) != 4+spend.Dimensions || len(lines) != 5 {
			return errReply
		}
		h := spend.Hold{
			ID: id, At: time.UnixMilli(n[0]), Open: n[1] == 1, Amounts: spend.Amounts(n[4:]),
			Kind: lines[0], Resource: lines[1], Owner: spend.Owner{Team: lines[2], Key: lines[3]},
		}
		if h.Open {
			h.Until = time.UnixMilli(n[2])
		}
		if err := json.Unmarshal([]byte(lines[4]), &h.About); err != nil {
			return err
		}
		state.Holds = append(state.Holds, h)
	}
	return nil
}

func decodeResource(id, text string) (spend.Record, error) {
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) != 3+spend.Dimensions || len(lines) != 4 {
		return spend.Record{}, errReply
	}
	r := spend.Record{
		ID: id, Version: n[0], Since: time.UnixMilli(n[1]), Pending: n[2], Amounts: spend.Amounts(n[3:]),
		Kind: lines[0], Owner: spend.Owner{Team: lines[1], Key: lines[2]},
	}
	return r, json.Unmarshal([]byte(lines[3]), &r.About)
}

// Balances implements spend.Store.
func (s *Store) Balances(ctx context.Context, org string, o spend.Owner) (spend.State, error) {
	scopes := o.Scopes()
	fields := make([]string, 1, 1+len(scopes)) // the ledger's own record first
	for _, scope := range scopes {
		fields = append(fields, nameOf(scope))
	}
	var clock *redis.TimeCmd
	var values *redis.SliceCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		values, clock = p.HMGet(ctx, s.keys(org)[0], fields...), p.Time(ctx)
		return nil
	})
	if err != nil {
		return spend.State{}, fmt.Errorf("balances: %w: %w", spend.ErrUnavailable, err)
	}
	accounts := make(map[string]string, len(fields))
	for i, v := range values.Val() {
		if text, ok := v.(string); ok {
			accounts[fields[i]] = text
		}
	}
	state := spend.State{Now: time.UnixMilli(clock.Val().UnixMilli()), Zone: s.zones.Of(org)}
	if err := s.decode(org, &state, accounts, nil, nil); err != nil {
		return spend.State{}, fmt.Errorf("balances: %w", err)
	}
	balances := make([]spend.Balance, len(scopes))
	for i, scope := range scopes {
		balances[i].Scope = scope
		for _, b := range state.Balances {
			if b.Scope == scope {
				balances[i] = b
			}
		}
	}
	state.Balances = balances
	return state, nil
}

// Owners implements spend.Store.
func (s *Store) Owners(ctx context.Context, org string, resources []string) ([]spend.Owner, error) {
	values, err := s.client.HMGet(ctx, s.keys(org)[1], resources...).Result()
	if err != nil {
		return nil, fmt.Errorf("owners: %w: %w", spend.ErrUnavailable, err)
	}
	owners := make([]spend.Owner, len(values))
	for i, v := range values {
		text, known := v.(string)
		if !known {
			continue
		}
		r, err := decodeResource(resources[i], text)
		if err != nil {
			return nil, err
		}
		owners[i] = r.Owner
	}
	return owners, nil
}

// ahead reports whether a later state was seen.
func (s *Store) ahead(org string, p position) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.of(org).seen
	return p.epoch < was.epoch || p.epoch == was.epoch && p.seq < was.seq
}

// decodeRecord reads a line of integers and the lines of text behind it.
func decodeRecord(text string) (n []int64, lines []string, err error) {
	lines = strings.Split(text, "\n")
	n, err = split(lines[0], 0)
	return n, lines[1:], err
}

// nameOf is the field of a scope's account; see common.lua.
func nameOf(s spend.Scope) string {
	if s.Kind == spend.KindOrg {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.ID
}

func scopeOf(name string) spend.Scope {
	kind, id, _ := strings.Cut(name, ":")
	return spend.Scope{Kind: spend.ScopeKind(kind), ID: id}
}
