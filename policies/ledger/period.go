package ledger

import (
	"math/bits"
	"slices"
	"time"
)

// hour is one in milliseconds, the unit of every time in the ledger.
const hour = int64(time.Hour / time.Millisecond)

// cost is the cost of a rate in micro-dollars per hour over some milliseconds, in
// micro-dollars rounded down. carry is the remainder of an earlier cost, in
// micro-dollar milliseconds per hour, and rest that of this one; both are below
// an hour.
func cost(rate, ms, carry int64) (micro, rest int64) {
	rate = min(rate, MaxBurn)
	if rate <= 0 || ms <= 0 {
		return 0, carry
	}
	hi, lo := bits.Mul64(uint64(rate), uint64(ms))
	lo, over := bits.Add64(lo, uint64(carry), 0)
	q, r := bits.Div64(hi+over, lo, uint64(hour))
	return int64(q), int64(r)
}

// forecast is cost rounded up.
func forecast(rate, ms int64) int64 {
	micro, rest := cost(rate, ms, 0)
	if rest > 0 {
		micro++
	}
	return micro
}

// period is a calendar period and its accrued cost.
type period struct {
	// start is when it began, in Unix milliseconds.
	start int64
	// accrued is in micro-dollars, carry is the remainder; see cost.
	accrued, carry int64
}

// The periods of a scope.
const (
	day = iota
	week
	month
	quarter
	total // never ends
	periods
)

// forever is the end of the period that never ends, in Unix milliseconds. The scripts of a store compute with it exactly.
const forever = int64(1) << 52

// Accrued is the cost that has accrued in each current period, and in total, in micro-dollars.
type Accrued struct{ Day, Week, Month, Quarter, Total int64 }

func accruedOf(n [periods]int64) Accrued {
	return Accrued{n[day], n[week], n[month], n[quarter], n[total]}
}

// list is the inverse of accruedOf.
func (a Accrued) list() [periods]int64 {
	return [periods]int64{a.Day, a.Week, a.Month, a.Quarter, a.Total}
}

// Of returns the cost of one period.
func (a Accrued) Of(p AccrualPeriod) int64 { return a.list()[p.Index()] }

// plus returns a with a cost added to each period.
func (a Accrued) plus(micro int64) Accrued {
	n := a.list()
	for i := range n {
		n[i] += micro
	}
	return accruedOf(n)
}

// stored is the order in which stores keep the periods of an account. Earlier versions know the day and the month alone.
var stored = [periods]int{day, month, week, quarter, total} //nolint:gochecknoglobals // read only

// contains is, for each period that earlier versions do not keep, the longest stored period whose cost it is sure to contain.
var contains = [periods]int{week: day, quarter: month, total: month} //nolint:gochecknoglobals // read only

// account is the account of one scope.
type account struct {
	// at is until when accrual is up to date, in Unix milliseconds.
	at                  int64
	committed, reserved Amounts
	periods             [periods]period
}

func newAccount(now int64, c *Calendar) *account {
	a := &account{at: now}
	for i := range a.periods {
		a.periods[i].start, _ = c.bounds(i, now)
	}
	return a
}

// touch brings accrual up to date. A clock that steps back changes nothing, and in
// another zone the period under way goes on until the next one begins there.
func (a *account) touch(now int64, c *Calendar) {
	now = max(now, a.at)
	for i := range a.periods {
		p, from := &a.periods[i], a.at
		if start, _ := c.bounds(i, now); start > a.at {
			*p, from = period{start: start}, start
		}
		micro, rest := cost(a.committed[Burn]+a.reserved[Burn], now-from, p.carry)
		p.accrued, p.carry = p.accrued+micro, rest
	}
	a.at = now
}

// spend accrues a one-time cost.
func (a *account) spend(micro int64) {
	for i := range a.periods {
		a.periods[i].accrued += micro
	}
}

// correct accrues a rate from a time to another, as far as that is in the periods; a
// negative one is taken off.
func (a *account) correct(rate, from, to int64) {
	for i := range a.periods {
		p := &a.periods[i]
		ms := min(a.at, to) - max(from, p.start)
		if rate >= 0 {
			micro, rest := cost(rate, ms, p.carry)
			p.accrued, p.carry = p.accrued+micro, rest
			continue
		}
		micro, rest := cost(-rate, ms, 0)
		if p.carry -= rest; p.carry < 0 {
			p.carry += hour
			micro++
		}
		if p.accrued -= micro; p.accrued < 0 {
			p.accrued, p.carry = 0, 0
		}
	}
}

// DecodeBalance reads an account as the store has it and brings it up to date: the time
// until when it is, the amounts committed and reserved, and for the day, the month, the week, the quarter and the total
// each its beginning, its accrued cost, and the remainder.
func DecodeBalance(s Scope, n []int64, now time.Time, z Zone) Balance {
	a := accountOf(n)
	c := z.Calendar(now)
	a.touch(now.UnixMilli(), &c)
	return a.balance(s)
}

// LegacyDimensions is how many of the [Dimensions] earlier versions know. Stores keep the others at the ends of records.
const LegacyDimensions = Sandboxes

// DecodeAmounts returns amounts as stores keep them: the first six, which begin at a place, and the others. A record of an earlier version
// has no others.
func DecodeAmounts(n []int64, at int, others []int64) (a Amounts) {
	copy(a[:LegacyDimensions], n[at:])
	copy(a[LegacyDimensions:], others)
	return a
}

func accountOf(n []int64) *account {
	at := 1 + 2*LegacyDimensions
	others := n[min(len(n), at+3*periods):]
	a := &account{at: n[0], committed: DecodeAmounts(n, 1, others), reserved: DecodeAmounts(n, 1+LegacyDimensions, others[len(others)/2:])}
	for _, i := range stored {
		if at+3 > len(n) { // by an earlier version
			a.periods[i] = a.periods[contains[i]]
			continue
		}
		a.periods[i] = period{start: n[at], accrued: n[at+1], carry: n[at+2]}
		at += 3
	}
	return a
}

// Encode is the inverse of [DecodeBalance].
func (b Balance) Encode(at time.Time, z Zone) []int64 {
	n := slices.Concat([]int64{at.UnixMilli()}, b.Committed[:LegacyDimensions], b.Reserved[:LegacyDimensions])
	c := z.Calendar(at)
	accrued := b.Accrued.list()
	for _, i := range stored {
		start, _ := c.bounds(i, at.UnixMilli())
		n = append(n, start, accrued[i], 0)
	}
	return slices.Concat(n, b.Committed[LegacyDimensions:], b.Reserved[LegacyDimensions:])
}
