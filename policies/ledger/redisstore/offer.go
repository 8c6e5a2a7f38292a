package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// offerKept is the retention time of the offers for a rebuild.
	offerKept = time.Hour
	// offerBatch is the largest number of scopes or owners in one step.
	offerBatch = 100
	// unowned is the field prefix for resources offered without an owner. They have separate fields, so that offers with and without an
	// owner do not overwrite each other.
	unowned = "-"
)

// offers returns the keys of the offers for a rebuild: owners by resource, and the gateways that have made their offers.
func (s *Store) offers(org string, epoch int64) (owners, gateways string) {
	stem := s.prefix + "{" + org + "}:offered:" + strconv.FormatInt(epoch, 10)
	return stem, stem + ":by"
}

// Heads implements ledger.RecoveryStore.
func (s *Store) Heads(ctx context.Context, orgs []string) ([]ledger.Head, error) {
	heads, seen, out := make([]*head, len(orgs)), make([]position, len(orgs)), make([]ledger.Head, len(orgs))
	for i, org := range orgs {
		if err := s.closeAfterGatewayLoss(ctx, org); err != nil {
			return nil, err
		}
		seen[i] = s.seen(org)
	}
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, org := range orgs {
			heads[i] = s.readHead(ctx, p, s.keys(org))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger heads: %w: %w", ledger.ErrUnavailable, err)
	}
	for i := range orgs {
		st, err := heads[i].state(seen[i])
		if err != nil {
			return nil, fmt.Errorf("read ledger heads: %w", err)
		}
		if st.lost == "" && (s.server == nil || !s.server.Pausing()) { // the position reached by other gateways is known from now on
			s.saw(orgs[i], position{st.epoch, st.seq, unknownWrites})
		}
		out[i] = ledger.Head{Epoch: st.epoch, Seq: st.seq, Complete: st.complete, Lost: st.lost}
	}
	return out, nil
}

// ownersScript stores offered owners, each with the time of its offer. It keeps the latest owner of each resource.
//
// ARGV  1  retention in ms   2  time of the offer in ms, then for each resource: ID, owner.
var ownersScript = redis.NewScript(`
for i = 3, #ARGV, 2 do
  local was = redis.call('HGET', KEYS[1], ARGV[i])
  if not was or tonumber(string.match(was, '^-?%d+')) < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[2] .. ' ' .. ARGV[i + 1])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`)

// Offer implements ledger.RecoveryStore.
func (s *Store) Offer(ctx context.Context, org string, o *ledger.Offer) error {
	owners, _ := s.offers(org, o.Epoch)
	var fields []any
	for id, owned := range o.Owners {
		text, err := json.Marshal(owned)
		if err != nil {
			return err
		}
		if owned.Owner == (ledger.Owner{}) {
			id = unowned + id
		}
		fields = append(fields, id, string(text))
	}
	for batch := range slices.Chunk(fields, 2*offerBatch) {
		args := append([]any{offerKept.Milliseconds(), o.At.UnixMilli()}, batch...)
		if err := ownersScript.Run(ctx, s.client, []string{owners}, args...).Err(); err != nil {
			return fmt.Errorf("offer a snapshot of the ledger to other gateways: %w: %w", ledger.ErrUnavailable, err)
		}
	}
	for batch := range slices.Chunk(o.Balances, offerBatch) {
		args := []any{s.known(org), len(batch)}
		for _, b := range batch {
			args = append(args, nameOf(b.Scope), integers(b.Encode(o.At, o.Zone)...))
		}
		if _, err := s.run(ctx, s.offer, org, s.keys(org), args); err != nil {
			return fmt.Errorf("offer a snapshot of the ledger to other gateways: %w", err)
		}
	}
	return nil
}

// restoreBatch is the largest number of holds, and of ended holds, that one script restores.
const restoreBatch = 64

// otherEpoch is the status of a restoration into a ledger with another epoch.
const otherEpoch = -2

// Restore implements ledger.RecoveryStore.
func (s *Store) Restore(ctx context.Context, org string, r *ledger.Restoration) (restored []ledger.Hold, err error) {
	holds, ended := r.Holds, r.Ended
	for len(holds)+len(ended) > 0 {
		some, over := holds[:min(restoreBatch, len(holds))], ended[:min(restoreBatch, len(ended))]
		if len(over) == restoreBatch {
			some = nil // ended holds come first
		}
		holds, ended = holds[len(some):], ended[len(over):]
		args := []any{s.known(org, r.Epoch, int64(len(over)), int64(len(some)))}
		for _, id := range over {
			args = append(args, id)
		}
		for i := range some {
			h := &some[i]
			until := int64(0)
			if h.Open {
				until = h.Until.UnixMilli()
			}
			amounts := h.Amounts.Clamped()
			args = append(args, integers(slices.Concat([]int64{h.At.UnixMilli(), flag(h.Open), until, flag(h.Accrued)}, amounts[:])...),
				h.ID, h.Kind, h.Resource, h.Owner.Team, h.Owner.Key, encodeMetadata(h.Metadata), h.Holder.String())
		}
		reply, err := s.run(ctx, s.restore, org, s.keys(org), args)
		switch {
		case err != nil:
			return restored, fmt.Errorf("restore reservations: %w", err)
		case reply.status == otherEpoch:
			return restored, ledger.ErrEpochChanged
		case len(reply.numbers) != len(some):
			return restored, errReply
		}
		for i, made := range reply.numbers {
			if made == 1 {
				restored = append(restored, some[i].Hold)
			}
		}
	}
	for batch := range slices.Chunk(r.Jobs, offerBatch) {
		cmds, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, j := range batch {
				p.SetArgs(ctx, s.jobs(org, []ledger.Job{j.Job})[0], j.Team+"\n"+j.Key, redis.SetArgs{Mode: "NX", ExpireAt: j.Until})
			}
			return nil
		})
		for _, cmd := range cmds {
			if e := cmd.Err(); errors.Is(err, redis.Nil) && !errors.Is(e, redis.Nil) {
				err = e // Nil means that the store already has the owner
			}
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return restored, fmt.Errorf("restore reservations: %w: %w", ledger.ErrUnavailable, err)
		}
	}
	return restored, nil
}

// MarkRestored implements ledger.RecoveryStore.
func (s *Store) MarkRestored(ctx context.Context, org string, epoch int64, gateway string) error {
	_, gateways := s.offers(org, epoch)
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, gateways, gateway)
		p.Expire(ctx, gateways, offerKept)
		return nil
	})
	if err != nil {
		return fmt.Errorf("mark as restored: %w: %w", ledger.ErrUnavailable, err)
	}
	return nil
}

// Offers implements ledger.RecoveryStore.
func (s *Store) Offers(ctx context.Context, org string, epoch int64) (map[string]ledger.Ownership, []string, error) {
	owners, gateways := s.offers(org, epoch)
	var texts *redis.MapStringStringCmd
	var names *redis.StringSliceCmd
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		texts, names = p.HGetAll(ctx, owners), p.SMembers(ctx, gateways)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read offers: %w: %w", ledger.ErrUnavailable, err)
	}
	all := make(map[string]ledger.Ownership, len(texts.Val()))
	for id, text := range texts.Val() {
		id, without := strings.CutPrefix(id, unowned)
		if _, owned := all[id]; owned && without {
			continue
		}
		var owned ledger.Ownership
		_, text, _ = strings.Cut(text, " ")
		if err := json.Unmarshal([]byte(text), &owned); err != nil {
			return nil, nil, fmt.Errorf("read offers: %w", err)
		}
		all[id] = owned
	}
	return all, names.Val(), nil
}
