package storetest

import (
	"math/big"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// hour is an hour in milliseconds, the unit of all times in the model.
const hour = int64(time.Hour / time.Millisecond)

// forever is the end of the period that never ends, in Unix milliseconds.
const forever = int64(1) << 52

// Periods of a scope.
const (
	day = iota
	week
	month
	quarter
	total // never ends
	periods
)

// period is a calendar period with its accrued cost.
type period struct {
	start int64 // in Unix milliseconds
	// accrued is in micro-dollars, carry in micro-dollar milliseconds per hour and less than one hour's worth.
	accrued, carry int64
}

// account is the account of one scope.
type account struct {
	at                  int64 // end of the accrued time, in Unix milliseconds
	committed, reserved ledger.Amounts
	periods             [periods]period
}

func newAccount(now int64, c *ledger.Calendar) *account {
	a := &account{at: now}
	for i := range a.periods {
		a.periods[i].start, _ = bounds(c, i, now)
	}
	return a
}

// bounds returns the start and the end of the period that contains a time.
func bounds(c *ledger.Calendar, which int, ms int64) (start, end int64) {
	for _, end = range c[which] {
		if end > ms {
			return start, end
		}
		start = end
	}
	return start, end
}

// touch accrues cost up to now. It does nothing if the clock has stepped back. After a change of the time zone, the current period
// continues until the next period in the new zone begins.
func (a *account) touch(now int64, c *ledger.Calendar) {
	now = max(now, a.at)
	for i := range a.periods {
		p, from := &a.periods[i], a.at
		if start, _ := bounds(c, i, now); start > a.at {
			*p, from = period{start: start}, start
		}
		micro, rest := cost(a.committed[ledger.Burn]+a.reserved[ledger.Burn], now-from, p.carry)
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

// correct accrues a rate between two times, as far as they lie in the current periods. A negative rate lowers the accrued cost.
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

// cost returns the cost of a rate over ms milliseconds in micro-dollars, rounded down, and the remainder. It calculates with big integers, so
// that it does not share an overflow with the ledger.
func cost(rate, ms, carry int64) (micro, rest int64) {
	if rate <= 0 || ms <= 0 {
		return 0, carry
	}
	n := new(big.Int).Mul(big.NewInt(min(rate, ledger.MaxBurn)), big.NewInt(ms))
	n.Add(n, big.NewInt(carry))
	q, r := n.DivMod(n, big.NewInt(hour), new(big.Int))
	return q.Int64(), r.Int64()
}

// forecast returns the same as cost without a carry, but rounded up.
func forecast(rate, ms int64) int64 {
	micro, rest := cost(rate, ms, 0)
	if rest > 0 {
		micro++
	}
	return micro
}

// levels returns the usage of a scope's ceilings with the additional amounts.
func (a *account) levels(more ledger.Amounts, h ledger.Horizon, c *ledger.Calendar) [ledger.Ceilings]ledger.Level {
	var out [ledger.Ceilings]ledger.Level
	for i, d := range map[int]int{
		ledger.PerHour: ledger.Burn, ledger.CeilingGPUs: ledger.GPUs, ledger.CeilingPods: ledger.Pods, ledger.CeilingWorkers: ledger.Workers,
		ledger.CeilingVolumeGB: ledger.VolumeGB, ledger.CeilingSandboxes: ledger.Sandboxes,
	} {
		out[i] = ledger.Level{Used: a.committed[d], Reserved: a.reserved[d], Needs: more[d]}
	}
	all := a.committed
	add(&all, a.reserved, 1)
	burn, adds := all[ledger.Burn]-all[ledger.Bounded], more[ledger.Burn]-more[ledger.Bounded]
	for i, p := range a.periods {
		_, end := bounds(c, i, a.at)
		ms := horizon(h, a.at, end)
		goes := forecast(burn, ms)
		needs := forecast(burn+adds, ms) - goes
		if adds > 0 {
			needs = max(1, needs)
		}
		l := ledger.Level{Used: p.accrued, Reserved: goes + all[ledger.Cost], Needs: needs + more[ledger.Cost]}
		full := h.Duration().Milliseconds()
		if h == ledger.UntilPeriodEnd {
			full = ledger.DefaultHorizon.Duration().Milliseconds()
		}
		if adds > 0 && end < forever && a.at+full > end {
			l.Needs = max(l.Needs, forecast(burn+adds, a.at+full-max(a.at, end))-l.Used-l.Reserved)
		}
		out[ledger.PerDay+i] = l
	}
	return out
}

// horizon returns a horizon in milliseconds, at a time within a period that ends at end.
func horizon(h ledger.Horizon, now, end int64) int64 {
	if h == ledger.UntilPeriodEnd && end < forever {
		return max(0, end-now)
	}
	if h == ledger.UntilPeriodEnd {
		h = ledger.DefaultHorizon
	}
	return max(0, min(h.Duration().Milliseconds(), end-now))
}

// accrued returns the accrued costs of the account.
func (a *account) accrued() (out [periods]int64) {
	for i, p := range a.periods {
		out[i] = p.accrued
	}
	return out
}

func (a *account) balance(s ledger.Scope) ledger.Balance {
	return ledger.Balance{Scope: s, Committed: a.committed, Reserved: a.reserved, Accrued: accruedOf(a.accrued())}
}

// load gives the account the amounts of a balance.
func (a *account) load(b *ledger.Balance) {
	a.committed, a.reserved = b.Committed, b.Reserved
	for i, accrued := range [periods]int64{b.Day, b.Week, b.Month, b.Quarter, b.Total} {
		a.periods[i].accrued = accrued
	}
}

// empty reports whether all amounts and accrued costs of the account are zero.
func (a *account) empty() bool {
	return a.committed == (ledger.Amounts{}) && a.reserved == (ledger.Amounts{}) && a.accrued() == [periods]int64{}
}

// raise sets the accrued cost of each period that another account shares to the larger cost of the two.
func (a *account) raise(other *account) {
	for i := range a.periods {
		if p := other.periods[i]; p.start == a.periods[i].start && p.accrued > a.periods[i].accrued {
			a.periods[i] = p
		}
	}
}

func accruedOf(n [periods]int64) ledger.Accrued {
	return ledger.Accrued{Day: n[day], Week: n[week], Month: n[month], Quarter: n[quarter], Total: n[total]}
}

// add adds b to a, or subtracts it if sign is negative.
func add(a *ledger.Amounts, b ledger.Amounts, sign int64) {
	for i := range a {
		a[i] += sign * b[i]
	}
}

// larger returns the larger amount in each dimension.
func larger(a, b ledger.Amounts) ledger.Amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}
