package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// scopeKey returns the key of a scope, or the prefix of an organisation's scope keys for the zero Ref.
func scopeKey(prefix, org string, ref ratelimit.Ref) string {
	return prefix + "{" + org + "}:" + string(ref.Kind) + ":" + ref.ID
}

func indexKey(prefix, org string) string { return prefix + "{" + org + "}#index" }

// leasesKey returns the key of the lease table for a day. Two tables alternate, so that each can expire before it is used again.
func leasesKey(prefix, org string, day int64) string {
	return prefix + "{" + org + "}#leases:" + strconv.FormatInt(day%2, 10)
}

// debtsKey returns the key of the table of the debts charged on a day, one of two as for leases.
func debtsKey(prefix, org string, day int64) string {
	return prefix + "{" + org + "}#debts:" + strconv.FormatInt(day%2, 10)
}

// encoder encodes operations as arguments of apply.lua and decodes its reply. It is reused for its buffers.
type encoder struct {
	buf   []byte
	debts []byte
	body  []byte
	// keys contains the scope keys, followed by the others. seen maps keys to their positions.
	keys   []string
	others []string
	seen   map[string]int
	// indexOf is, for each scope key, the position of its index in others.
	indexOf []int
	// at contains the positions of the scope keys of all operations, in order.
	at   []int
	args []any
	// numbers are the numbers in the reply.
	numbers []int64
}

// encode returns the keys and arguments for ops, sent by a writer with a known position. They are valid until the next call.
func (e *encoder) encode(prefix string, from origin, ops []ratelimit.Op) ([]string, []any) {
	e.reset()
	e.args = append(e.args, from.writer)
	for i := range ops {
		for s := range ops[i].Scopes {
			e.scope(prefix, ops[i].Org, ops[i].Scopes[s].Ref())
		}
	}
	nk := len(e.keys)
	at, debts := 0, int64(0)
	for i := range ops {
		debts += e.owed(prefix, &ops[i], nk, at)
		at = e.op(prefix, &ops[i], nk, at)
	}
	announce := int64(0)
	if from.announce {
		announce = 1
	}
	e.buf = append(e.buf, '[')
	e.buf = strconv.AppendInt(e.buf, from.epoch, 10)
	e.buf = appendNumber(e.buf, from.writes, announce, int64(nk))
	for _, other := range e.indexOf {
		e.buf = appendNumber(e.buf, int64(nk+other+1))
	}
	e.buf = appendNumber(e.buf, debts)
	e.buf = append(append(append(e.buf, e.debts...), e.body...), ']')
	e.args[0] = string(e.buf)
	e.keys = append(append(e.keys, e.others...), from.key)
	return e.keys, e.args
}

func (e *encoder) reset() {
	e.buf, e.debts, e.body, e.keys, e.others = e.buf[:0], e.debts[:0], e.body[:0], e.keys[:0], e.others[:0]
	e.indexOf, e.at, e.args = e.indexOf[:0], e.at[:0], append(e.args[:0], nil)
	clear(e.seen)
}

// scope records the position of a scope's key, adding it if it is new.
func (e *encoder) scope(prefix, org string, ref ratelimit.Ref) {
	key := scopeKey(prefix, org, ref)
	k, ok := e.seen[key]
	if !ok {
		k = len(e.keys)
		e.seen[key] = k
		e.keys = append(e.keys, key)
		e.indexOf = append(e.indexOf, e.other(indexKey(prefix, org)))
	}
	e.at = append(e.at, k)
}

// other returns the position of a key in others, adding it if it is new.
func (e *encoder) other(key string) int {
	k, ok := e.seen[key]
	if !ok {
		k = len(e.others)
		e.seen[key] = k
		e.others = append(e.others, key)
	}
	return k
}

// owed appends the debts of an operation whose first scope has number at, and returns the number of debts.
func (e *encoder) owed(prefix string, op *ratelimit.Op, nk, at int) (n int64) {
	for i := range op.Debts {
		d := &op.Debts[i]
		if d.Number == 0 {
			continue
		}
		n++
		e.args = append(e.args, op.Debtor)
		table := nk + e.other(debtsKey(prefix, op.Org, 0)) + 1
		e.other(debtsKey(prefix, op.Org, 1))
		blind := int64(0)
		if d.Blind {
			blind = 1
		}
		e.debts = appendNumber(e.debts, int64(e.at[at+i]+1), int64(table), int64(len(e.args)), d.Number, blind, d.Generation)
		for w := range ratelimit.Windows {
			e.debts = appendNumber(e.debts, d.Index[w], d.Units[w])
		}
		l := &op.Scopes[i].Limit
		e.debts = appendNumber(e.debts, l.Minute, l.Hour, l.Day)
	}
	return n
}

// idle reports whether op only charges its debts.
func idle(op *ratelimit.Op) bool { return op.Calls == 0 && len(op.Draws) == 0 }

// op appends one operation whose first scope has number at, and returns the number of the next scope.
func (e *encoder) op(prefix string, op *ratelimit.Op, nk, at int) int {
	if idle(op) {
		return at + len(op.Scopes)
	}
	if len(op.Draws) == 0 {
		e.body = appendNumber(e.body, op.Calls, int64(len(op.Scopes)))
	} else {
		e.args = append(e.args, op.Gateway)
		leases := nk + e.other(leasesKey(prefix, op.Org, 0)) + 1
		e.other(leasesKey(prefix, op.Org, 1))
		e.body = appendNumber(e.body, 0, int64(len(op.Scopes)), op.Divisor, int64(leases), int64(len(e.args)))
	}
	for s := range op.Scopes {
		l := &op.Scopes[s].Limit
		e.body = appendNumber(e.body, int64(e.at[at]+1), l.Minute, l.Hour, l.Day)
		if len(op.Draws) == 0 {
			e.body = appendNumber(e.body, op.Units(s))
		} else {
			d := &op.Draws[s]
			e.body = appendNumber(e.body, d.Need[:]...)
			e.body = appendNumber(e.body, d.Want[:]...)
			e.body = appendNumber(e.body, d.Held[:]...)
		}
		at++
	}
	return at
}

func appendNumber(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = append(b, ',')
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// errReply means that a reply is malformed.
var errReply = errors.New("malformed reply")

// stateWords is the number of numbers that describe one scope in a reply.
const stateWords = 1 + 2*ratelimit.Windows

// head decodes the beginning of a reply: the writer's position, and whether it differs from the position that the writer knew. If they
// differ, the reply contains nothing else.
func (e *encoder) head(reply string) (p position, otherwise bool, err error) {
	switch err := e.parse(reply); {
	case err != nil:
		return position{}, false, err
	case len(e.numbers) < 2:
		return position{}, false, errReply
	case len(e.numbers) == 2:
		return position{epoch: e.numbers[1]}, true, nil
	}
	return position{epoch: e.numbers[1], writes: e.numbers[2]}, false, nil
}

// headWords is the number of numbers at the beginning of a reply.
const headWords = 3

// decode sets the results of ops from the reply whose head was read, and returns the store's clock.
func (e *encoder) decode(ops []ratelimit.Op) (int64, error) {
	nk := len(e.indexOf)
	want := headWords + stateWords*nk
	for i := range ops {
		if !idle(&ops[i]) {
			want += 1 + ratelimit.Windows*len(ops[i].Draws)
		}
	}
	if len(e.numbers) != want {
		return 0, fmt.Errorf("%w: must contain %[3]d numbers, got %[2]d", errReply, len(e.numbers), want)
	}
	p := headWords
	for i := range ops {
		if ops[i].Admitted = 0; idle(&ops[i]) {
			continue
		}
		ops[i].Admitted = e.numbers[p]
		p++
		for d := range ops[i].Draws {
			p += copy(ops[i].Draws[d].Granted[:], e.numbers[p:])
		}
	}
	e.unwind(ops, e.numbers[p:])
	return e.numbers[0], nil
}

// unwind computes the state after each operation. The reply contains only the final states; unwind goes backwards and subtracts the amount
// of each operation.
func (e *encoder) unwind(ops []ratelimit.Op, states []int64) {
	at := len(e.at)
	for i := len(ops) - 1; i >= 0; i-- {
		op := &ops[i]
		at -= len(op.Scopes)
		op.After = op.After[:0]
		for s := range op.Scopes {
			words := states[stateWords*e.at[at+s]:][:stateWords]
			op.After = append(op.After, stateOf(words))
			for w := range ratelimit.Windows {
				words[2+2*w] -= charged(op, s, w)
			}
		}
	}
}

// charged returns the amount that op added to window w of its scope s.
func charged(op *ratelimit.Op, s, w int) int64 {
	switch {
	case len(op.Draws) == 0:
		return op.Admitted * op.Units(s)
	case op.Admitted == 0:
		return 0
	}
	return op.Draws[s].Need[w] + op.Draws[s].Granted[w]
}

func stateOf(words []int64) ratelimit.State {
	s := ratelimit.State{Generation: words[0]}
	for w := range ratelimit.Windows {
		s.Index[w], s.Count[w] = words[1+2*w], words[2+2*w]
	}
	return s
}

// parse parses the numbers of a reply, which are separated by single spaces or commas.
func (e *encoder) parse(reply string) error {
	e.numbers = e.numbers[:0]
	n, digits := int64(0), 0
	for i := range len(reply) {
		c := reply[i]
		switch {
		case c >= '0' && c <= '9' && digits < 18:
			n, digits = n*10+int64(c-'0'), digits+1
		case (c == ' ' || c == ',') && digits > 0:
			e.numbers = append(e.numbers, n)
			n, digits = 0, 0
		default:
			return fmt.Errorf("%w: unexpected character %q", errReply, c)
		}
	}
	if digits == 0 {
		return fmt.Errorf("%w: trailing space", errReply)
	}
	e.numbers = append(e.numbers, n)
	return nil
}

// encodeAdjust returns the keys and arguments of adjust.lua.
func encodeAdjust(prefix, org string, adjustments []ratelimit.Adjustment) ([]string, []any) {
	keys := make([]string, 0, len(adjustments)+2)
	var body []byte
	for i := range adjustments {
		a := &adjustments[i]
		keys = append(keys, scopeKey(prefix, org, a.Ref))
		body = appendNumber(body, a.State.Generation)
		for w := range ratelimit.Windows {
			body = appendNumber(body, a.State.Index[w], a.State.Count[w], a.Delta[w])
		}
		body = appendNumber(body, a.Limit.Minute, a.Limit.Hour, a.Limit.Day)
		lease, held := int64(0), [ratelimit.Windows]int64{}
		if a.Gateway != "" {
			lease, held = 1, a.Held
		}
		body = appendNumber(body, lease)
		body = appendNumber(body, held[:]...)
	}
	body[0] = '['
	keys = append(keys, indexKey(prefix, org), leasesKey(prefix, org, 0), leasesKey(prefix, org, 1))
	return keys, []any{string(append(body, ']')), adjustments[0].Gateway}
}

// decodeScope decodes the stored value of the scope called name.
func decodeScope(name, text string) (ratelimit.ScopeState, error) {
	ref, err := ratelimit.ParseRef(name)
	if err != nil {
		return ratelimit.ScopeState{}, err
	}
	words, err := decodeWords(text, stateWords+ratelimit.Windows)
	if err != nil {
		return ratelimit.ScopeState{}, err
	}
	q := words[stateWords:]
	return ratelimit.ScopeState{
		Ref:   ref,
		Limit: ratelimit.Limit{Minute: q[0], Hour: q[1], Day: q[2]},
		State: stateOf(words),
	}, nil
}

// decodeLeases returns the leases of the scope with the given key on a day.
func decodeLeases(key string, tables [2]map[string]string, day int64) ([]ratelimit.LeaseState, error) {
	var leases []ratelimit.LeaseState
	for field, text := range tables[day%2] {
		at := strings.LastIndexByte(field, '|')
		if at < 0 || field[:at] != key {
			continue
		}
		l, err := decodeLease(field[at+1:], text)
		if err != nil {
			return nil, err
		}
		if l.Index[2] == day {
			leases = append(leases, l)
		}
	}
	slices.SortFunc(leases, func(a, b ratelimit.LeaseState) int { return strings.Compare(a.Gateway, b.Gateway) })
	return leases, nil
}

// decodeLease decodes the stored value of a lease.
func decodeLease(gateway, text string) (ratelimit.LeaseState, error) {
	words, err := decodeWords(text, 2*ratelimit.Windows)
	if err != nil {
		return ratelimit.LeaseState{}, err
	}
	l := ratelimit.LeaseState{Gateway: gateway}
	for w := range ratelimit.Windows {
		l.Index[w], l.Held[w] = words[2*w], words[2*w+1]
	}
	return l, nil
}

func decodeWords(text string, n int) ([]int64, error) {
	var words []int64
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return nil, fmt.Errorf("value is not a list of integers: %w", err)
	}
	if len(words) != n {
		return nil, fmt.Errorf("value must contain %[2]d numbers, got %[1]d", len(words), n)
	}
	return words, nil
}
