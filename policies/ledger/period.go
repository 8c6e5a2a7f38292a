package ledger

import (
	"math/bits"
	"slices"
	"time"
)

// hour is an hour in milliseconds, the unit of all times in the ledger.
const hour = int64(time.Hour / time.Millisecond)

// cost returns the cost of a rate in micro-dollars per hour over ms milliseconds, in micro-dollars rounded down. carry is the remainder
// of an earlier cost, and rest the new remainder, both in micro-dollar milliseconds per hour and less than one hour's worth.
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

// forecast returns the same as cost without a carry, but rounded up.
func forecast(rate, ms int64) int64 {
	micro, rest := cost(rate, ms, 0)
	if rest > 0 {
		micro++
	}
	return micro
}

// period is a calendar period with its accrued cost.
type period struct {
	// start is the start of the period in Unix milliseconds.
	start int64
	// accrued is in micro-dollars. carry is the remainder; see cost.
	accrued, carry int64
}

// Periods of a scope.
const (
	day = iota
	week
	month
	quarter
	total // never ends
	periods
)

// forever is the end of the period that never ends, in Unix milliseconds. It is small enough for exact arithmetic in the store's
// scripts.
const forever = int64(1) << 52

// Accrued is the cost accrued in each current period and in total, in micro-dollars.
type Accrued struct{ Day, Week, Month, Quarter, Total int64 }

func accruedOf(n [periods]int64) Accrued {
	return Accrued{n[day], n[week], n[month], n[quarter], n[total]}
}

// list is the inverse of accruedOf.
func (a Accrued) list() [periods]int64 {
	return [periods]int64{a.Day, a.Week, a.Month, a.Quarter, a.Total}
}

// Of returns the cost accrued in one period.
func (a Accrued) Of(p AccrualPeriod) int64 { return a.list()[p.Index()] }

// plus returns a with a cost added to each period.
func (a Accrued) plus(micro int64) Accrued {
	n := a.list()
	for i := range n {
		n[i] += micro
	}
	return accruedOf(n)
}

// stored is the order of the periods in stored accounts. Earlier versions store only the day and the month.
var stored = [periods]int{day, month, week, quarter, total} //nolint:gochecknoglobals // read only

// contains maps each period that earlier versions do not store to the longest stored period whose cost is certainly part of it.
var contains = [periods]int{week: day, quarter: month, total: month} //nolint:gochecknoglobals // read only

// account is the account of one scope.
type account struct {
	// at is the end of the accrued time, in Unix milliseconds.
	at                  int64
	committed, reserved Amounts
	periods             [periods]period
}

// touch accrues cost up to now. It does nothing if the clock has stepped back. After a change of the time zone, the current period
// continues until the next period in the new zone begins.
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

func (a *account) balance(s Scope) Balance {
	var accrued [periods]int64
	for i, p := range a.periods {
		accrued[i] = p.accrued
	}
	return Balance{Scope: s, Committed: a.committed, Reserved: a.reserved, Accrued: accruedOf(accrued)}
}

// DecodeBalance decodes an account in the store's format and brings it up to date. n contains the time of the account, the committed
// amounts and the reserved amounts. Then it contains the start, the accrued cost and the remainder for the day, month, week, quarter and
// total, in this order.
func DecodeBalance(s Scope, n []int64, now time.Time, z Zone) Balance {
	a := accountOf(n)
	c := z.Calendar(now)
	a.touch(now.UnixMilli(), &c)
	return a.balance(s)
}

// LegacyDimensions is the number of [Dimensions] known to earlier versions. In a stored record, the amounts of the later dimensions are at
// the end.
const LegacyDimensions = Sandboxes

// DecodeAmounts decodes amounts in the format of stores. The first six amounts start at n[at]. The others are in a separate list, which
// records of earlier versions lack.
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
		if at+3 > len(n) { // written by an earlier version
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
