package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// page is the approximate number of fields of a large hash read in one step.
const page = 1000

// Show implements ledger.Store. It only reads. A small ledger is read in one step. For a large ledger, Show reads the holds before the
// resources, so that a hold that becomes a resource in the meantime is read at least once.
func (s *Store) Show(ctx context.Context, org string) (ledger.State, error) {
	keys, seen := s.keys(org), s.seen(org)
	size, err := s.client.HLen(ctx, keys[1]).Result()
	if err != nil {
		return ledger.State{}, fmt.Errorf("read ledger: %w: %w", ledger.ErrUnavailable, err)
	}
	var clock *redis.TimeCmd
	var head *head
	parts := make([]*redis.MapStringStringCmd, 3)
	if size > page {
		parts = parts[:1]
	}
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		head = s.readHead(ctx, p, keys)
		for i := range parts {
			parts[i] = p.HGetAll(ctx, keys[i])
		}
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return ledger.State{}, fmt.Errorf("read ledger: %w: %w", ledger.ErrUnavailable, err)
	}
	var resources, holds map[string]string
	if size <= page {
		resources, holds = parts[1].Val(), parts[2].Val()
	} else if holds, err = s.pages(ctx, keys[2]); err == nil {
		resources, err = s.pages(ctx, keys[1])
	}
	state := ledger.State{Now: time.UnixMilli(clock.Val().UnixMilli()), Zone: s.zones.Of(org)}
	if err == nil {
		err = errors.Join(head.apply(&state, seen), decode(&state, parts[0].Val(), resources, holds))
	}
	if err != nil {
		return ledger.State{}, fmt.Errorf("read ledger: %w", err)
	}
	state.Sort()
	return state, nil
}

// pages reads a hash in several steps. The result contains all fields that exist during the whole read. It may contain fields that exist
// during a part of the read.
func (s *Store) pages(ctx context.Context, key string) (map[string]string, error) {
	all := make(map[string]string)
	for cursor := uint64(0); ; {
		texts, next, err := s.client.HScan(ctx, key, cursor, "", page).Result()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		for i := 0; i+1 < len(texts); i += 2 {
			all[texts[i]] = texts[i+1]
		}
		if cursor = next; cursor == 0 {
			return all, nil
		}
	}
}

// Holds implements ledger.Store.
func (s *Store) Holds(ctx context.Context, org string) (ledger.State, error) {
	var clock *redis.TimeCmd
	var holds *redis.MapStringStringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		holds, clock = p.HGetAll(ctx, s.keys(org)[2]), p.Time(ctx)
		return nil
	})
	if err != nil {
		return ledger.State{}, fmt.Errorf("read holds: %w: %w", ledger.ErrUnavailable, err)
	}
	state := ledger.State{Now: time.UnixMilli(clock.Val().UnixMilli()), Zone: s.zones.Of(org)}
	if err := decode(&state, nil, nil, holds.Val()); err != nil {
		return ledger.State{}, fmt.Errorf("read holds: %w", err)
	}
	state.Sort()
	return state, nil
}

// decode decodes everything in a ledger except its head. accounts contains the fields that name a scope.
func decode(state *ledger.State, accounts, resources, holds map[string]string) error {
	for name, text := range accounts {
		if name == "" || name[0] == '@' {
			continue
		}
		n, err := split(text, 1+2*ledger.LegacyDimensions+6) // the shortest record, of an earlier version; see ledger.lua
		if err != nil {
			return err
		}
		state.Balances = append(state.Balances, ledger.DecodeBalance(scopeOf(name), n, state.Now, state.Zone))
	}
	delete(resources, "")
	delete(holds, "")
	for id, text := range resources {
		r, err := decodeResource(id, text)
		if err != nil {
			return err
		}
		state.Resources = append(state.Resources, r)
	}
	for id, text := range holds {
		h, err := decodeHold(id, text)
		if err != nil {
			return err
		}
		state.Holds = append(state.Holds, h)
	}
	return nil
}

func decodeHold(id, text string) (ledger.Hold, error) {
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) < 4+ledger.LegacyDimensions || len(lines) != 6 {
		return ledger.Hold{}, errReply
	}
	h := ledger.Hold{
		ID: id, At: time.UnixMilli(n[0]), Open: n[1] == 1, Amounts: ledger.DecodeAmounts(n, 4, n[4+ledger.LegacyDimensions:]),
		Kind: lines[0], Resource: lines[1], Owner: ledger.Owner{Team: lines[2], Key: lines[3]}, Holder: ledger.HolderOf(lines[5]),
	}
	if n[2] > 0 {
		h.Until = time.UnixMilli(n[2])
	}
	return h, json.Unmarshal([]byte(lines[4]), &h.Metadata)
}

func decodeResource(id, text string) (ledger.Record, error) {
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) < 4+ledger.LegacyDimensions || len(lines) != 4 {
		return ledger.Record{}, errReply
	}
	r := ledger.Record{
		ID: id, Version: n[0], Since: time.UnixMilli(n[1]), Changed: time.UnixMilli(n[3+ledger.LegacyDimensions]), Pending: n[2],
		Amounts: ledger.DecodeAmounts(n, 3, n[4+ledger.LegacyDimensions:]),
		Kind:    lines[0], Owner: ledger.Owner{Team: lines[1], Key: lines[2]},
	}
	return r, json.Unmarshal([]byte(lines[3]), &r.Metadata)
}

// Balances implements ledger.Store.
func (s *Store) Balances(ctx context.Context, org string, o ledger.Owner) (ledger.State, error) {
	scopes, keys, seen := o.Scopes(), s.keys(org), s.seen(org)
	fields := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		fields = append(fields, nameOf(scope))
	}
	var clock *redis.TimeCmd
	var values *redis.SliceCmd
	var head *head
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		head = s.readHead(ctx, p, keys)
		values, clock = p.HMGet(ctx, keys[0], fields...), p.Time(ctx)
		return nil
	})
	if err != nil {
		return ledger.State{}, fmt.Errorf("read balances: %w: %w", ledger.ErrUnavailable, err)
	}
	accounts := make(map[string]string, len(fields))
	for i, v := range values.Val() {
		if text, ok := v.(string); ok {
			accounts[fields[i]] = text
		}
	}
	state := ledger.State{Now: time.UnixMilli(clock.Val().UnixMilli()), Zone: s.zones.Of(org)}
	if err := errors.Join(head.apply(&state, seen), decode(&state, accounts, nil, nil)); err != nil {
		return ledger.State{}, fmt.Errorf("read balances: %w", err)
	}
	balances := make([]ledger.Balance, len(scopes))
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

// decodeRecord decodes a line of integers and the lines of text that follow it.
func decodeRecord(text string) (n []int64, lines []string, err error) {
	lines = strings.Split(text, "\n")
	n, err = split(lines[0], 0)
	return n, lines[1:], err
}

// nameOf returns the field of a scope's account; see ledger.lua.
func nameOf(s ledger.Scope) string {
	if s.Kind == ledger.KindOrg {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.ID
}

func scopeOf(name string) ledger.Scope {
	kind, id, _ := strings.Cut(name, ":")
	return ledger.Scope{Kind: ledger.ScopeKind(kind), ID: id}
}
