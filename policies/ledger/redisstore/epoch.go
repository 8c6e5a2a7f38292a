package redisstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// mark is added to the epoch stored in the fourth key; see ledger.lua.
const mark = 1e15

// Tokens of a closed ledger; see ledger.lua.
const older, server = "older", "server"

// head is the head of a ledger and the epochs in its keys, read in one pipeline.
type head struct {
	record, resources, holds *redis.SliceCmd
	ended                    *redis.FloatSliceCmd
}

// readHead reads the head of an organisation's ledger.
func (s *Store) readHead(ctx context.Context, p redis.Pipeliner, keys []string) *head {
	return &head{p.HMGet(ctx, keys[0], "", "@"+s.writer), p.HMGet(ctx, keys[1], ""), p.HMGet(ctx, keys[2], ""), p.ZMScore(ctx, keys[3], "")}
}

// ledgerState is the state of a ledger according to its head.
type ledgerState struct {
	position

	complete bool
	repairs  int64
	// lost is the part of the ledger that was lost since it was complete.
	lost ledger.LostPart
}

// state decodes a head, given the latest position previously known to the Store.
func (h *head) state(seen position) (ledgerState, error) {
	st, complete, token := ledgerState{}, false, ""
	if text, known := h.record.Val()[0].(string); known {
		n, lines, err := decodeRecord(text)
		if err != nil || len(n) != 4 || len(lines) != 1 {
			return ledgerState{}, errReply
		}
		st.position, complete, st.repairs, token = position{n[0], n[1], 0}, n[2] == 1, n[3], lines[0]
	}
	if text, wrote := h.record.Val()[1].(string); wrote {
		n, err := split(text, 3)
		if err != nil {
			return ledgerState{}, err
		}
		if n[0] == st.epoch {
			st.writes = n[1]
		}
	}
	behind, missing := st.before(seen), h.missing(st.epoch)
	st.complete = complete && missing == "" && !behind
	switch {
	case missing == ledger.LostAll && seen.epoch == 0 && token != older: // never built
	case missing != "":
		st.lost = missing
	case behind || token == older:
		st.lost = ledger.LostChanges
	case token == server:
		st.lost = ledger.LostServer
	}
	return st, nil
}

// apply copies the facts in the head to a state.
func (h *head) apply(state *ledger.State, seen position) error {
	st, err := h.state(seen)
	state.Epoch, state.Complete, state.Lost, state.Repairs = st.epoch, st.complete, st.lost, st.repairs
	return err
}

// missing returns the part of a ledger that does not have the ledger's epoch.
func (h *head) missing(epoch int64) ledger.LostPart {
	of := func(c *redis.SliceCmd) int64 {
		text, _ := c.Val()[0].(string)
		n, _ := strconv.ParseInt(text, 10, 64) // missing and malformed values are not an epoch
		return n
	}
	resources, holds, ended := of(h.resources), of(h.holds), int64(max(0, h.ended.Val()[0]-mark))
	switch {
	case epoch == 0 && resources == 0 && holds == 0 && ended == 0:
		return ledger.LostAll
	case epoch == 0:
		return ledger.LostAccounts
	case resources != epoch:
		return ledger.LostResources
	case holds != epoch:
		return ledger.LostHolds
	case ended != epoch:
		return ledger.LostEnded
	}
	return ""
}
