package platform

import "time"

// purse is an account's money. Spending is a rate, so the balance at any
// instant is one multiplication away from the last settlement.
type purse struct {
	Balance   float64 // USD at SettledAt
	SettledAt time.Time
	burn      float64 // USD per hour of everything that is charged
	Dry       bool    // the money ran out and nobody has paid since
}

// settle moves the balance forward to now.
func (p *purse) settle(now time.Time) {
	if now.After(p.SettledAt) {
		p.Balance -= p.burn * now.Sub(p.SettledAt).Hours()
		p.SettledAt = now
	}
	if p.Balance > 0 {
		p.Dry = false
	}
}

// emptyBy tells whether the money runs out by now, and when. It tells once per
// time that it happens.
func (p *purse) emptyBy(now time.Time) (empty bool, at time.Time) {
	if p.Dry || p.burn <= 0 {
		return false, time.Time{}
	}
	hours := max(p.Balance, 0) / p.burn
	const century = 24 * 365 * 100 // beyond what a Duration holds
	if hours > century {
		return false, time.Time{}
	}
	at = p.SettledAt.Add(time.Duration(hours * float64(time.Hour)))
	if at.After(now) {
		return false, time.Time{}
	}
	p.Dry = true
	return true, at
}

// spend takes a lump sum.
func (p *purse) spend(usd float64) { p.Balance -= usd }

// charge changes the rate at which money is spent, at the settled instant.
func (p *purse) charge(delta float64) {
	p.burn += delta
	if p.burn < 1e-12 { // what binary fractions leave when everything stopped
		p.burn = 0
	}
}
