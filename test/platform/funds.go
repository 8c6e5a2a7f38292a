package platform

import "time"

// funds is an account's money. Spending is a rate, so the balance at any
// instant is one multiplication away from the last settlement.
type funds struct {
	Balance   float64 // USD at SettledAt
	SettledAt time.Time
	burn      float64 // USD per hour of everything that is charged
	Dry       bool    // the money ran out and no payment was made since
}

// settle moves the balance forward to now.
func (f *funds) settle(now time.Time) {
	if now.After(f.SettledAt) {
		f.Balance -= f.burn * now.Sub(f.SettledAt).Hours()
		f.SettledAt = now
	}
	if f.Balance > 0 {
		f.Dry = false
	}
}

// emptyBy reports whether the money runs out by now, and when; once each time that
// it happens.
func (f *funds) emptyBy(now time.Time) (empty bool, at time.Time) {
	if f.Dry || f.burn <= 0 {
		return false, time.Time{}
	}
	hours := max(f.Balance, 0) / f.burn
	const century = 24 * 365 * 100 // beyond what a Duration holds
	if hours > century {
		return false, time.Time{}
	}
	at = f.SettledAt.Add(time.Duration(hours * float64(time.Hour)))
	if at.After(now) {
		return false, time.Time{}
	}
	f.Dry = true
	return true, at
}

// spend takes a lump sum.
func (f *funds) spend(usd float64) { f.Balance -= usd }

// charge changes the rate at which money is spent, at the settled instant.
func (f *funds) charge(delta float64) {
	f.burn += delta
	if f.burn < 1e-12 { // what binary fractions leave when everything stopped
		f.burn = 0
	}
}
