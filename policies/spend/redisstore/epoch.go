package redisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// mark is added to the epoch in the fourth key; see common.lua.
const mark = 1e15

// The tokens of a ledger that was closed; see common.lua.
const older, server = "older", "server"

// head is the ledger's own record and the epochs in its keys, read in a pipeline.
type head struct {
	record, resources, holds *redis.SliceCmd
	ended                    *redis.FloatSliceCmd
}

// readHead reads the head of a ledger.
func readHead(ctx context.Context, p redis.Pipeliner, keys []string) *head {
	return &head{p.HMGet(ctx, keys[0], ""), p.HMGet(ctx, keys[1], ""), p.HMGet(ctx, keys[2], ""), p.ZMScore(ctx, keys[3], "")}
}

// standing is the state of a ledger by its head.
type standing struct {
	position

	complete bool
	repairs  int64
	// lost is the part of it that the store has lost since it was complete.
	lost spend.Lost
}

// standing reads a head, with the latest state that had been seen before.
func (h *head) standing(seen position, writer string) (standing, error) {
	text, known := h.record.Val()[0].(string)
	if !known {
		text = "0 0 0 0\n"
	}
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) < 3 || len(lines) == 0 {
		return standing{}, errReply
	}
	st := standing{position: position{n[0], n[1], writesOf(writer, lines[1:])}}
	unmarked := len(n) == 3 && st.epoch > 0 // a version has written last that marks no keys and names no writers
	if unmarked || len(n) > 4 && n[4] > 0 {
		st.writes = max(st.writes, seen.writes)
	}
	if len(n) > 3 {
		st.repairs = n[3]
	}
	behind, token := st.behind(seen), lines[0]
	var missing spend.Lost
	if !unmarked {
		missing = h.missing(st.epoch)
	}
	st.complete = n[2] == 1 && missing == "" && !behind
	switch {
	case missing == spend.LostAll && seen.epoch == 0 && token != older: // it was never built
	case missing != "":
		st.lost = missing
	case behind || token == older:
		st.lost = spend.LostChanges
	case token == server:
		st.lost = spend.LostServer
	}
	return st, nil
}

// tell fills in the facts of a state that its head has.
func (h *head) tell(state *spend.State, seen position, writer string) error {
	st, err := h.standing(seen, writer)
	state.Epoch, state.Complete, state.Lost, state.Repairs = st.epoch, st.complete, st.lost, st.repairs
	return err
}

// missing returns what of a ledger is not of its epoch.
func (h *head) missing(epoch int64) spend.Lost {
	of := func(c *redis.SliceCmd) int64 {
		text, _ := c.Val()[0].(string)
		n, _ := strconv.ParseInt(text, 10, 64) // nothing and nonsense are no epoch
		return n
	}
	resources, holds, ended := of(h.resources), of(h.holds), int64(max(0, h.ended.Val()[0]-mark))
	switch {
	case epoch == 0 && resources == 0 && holds == 0 && ended == 0:
		return spend.LostAll
	case epoch == 0:
		return spend.LostAccounts
	case resources != epoch:
		return spend.LostResources
	case holds != epoch:
		return spend.LostHolds
	case ended != epoch:
		return spend.LostEnded
	}
	return ""
}

// writesOf is how often a writer has written, by the lines of a ledger's own record.
func writesOf(writer string, lines []string) int64 {
	for _, text := range lines {
		if text, own := strings.CutSuffix(text, " "+writer); own {
			if n, err := split(text, 2); err == nil {
				return n[0]
			}
		}
	}
	return 0
}
