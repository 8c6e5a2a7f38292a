package ledger

import "math"

// Range is an estimate in micro-dollars: of ten that were made, the real value is between
// Low and High of eight; docs/spend.md has how many in simulated months.
type Range struct{ Low, Expected, High int64 }

const (
	// persists is the part of today's deviation that is left a day later.
	persists = 0.8
	// weeks is how much history forecasts use.
	weeks = 8
	// trust is how many days of the same weekday weigh as much as all days together.
	trust = 2.0
	// z is how many standard deviations a range reaches from the expected value: 80 % of a
	// normal distribution.
	z = 1.28
	// vague is the standard deviation of a day of which there is no history, as a share.
	vague = 0.25
)

// Forecast estimates what accrues in the days to come: accrued has already, burn is
// the rate now in micro-dollars per hour, past are the costs of the whole days before
// today, the latest last, and left is how many days are to come, the rest of today
// first.
//
// A day is taken to cost the average of its weekday, and the excess of the present
// rate above or below that is taken to wear off.
func Forecast(accrued, burn int64, past []int64, left float64) Range {
	now := float64(burn) * 24
	p := profileOf(past, now)
	excess := now - p.mean(0)
	sum, spread, worn := 0.0, 0.0, 0.0
	share := left - math.Floor(left)
	if share == 0 && left > 0 {
		share = 1
	}
	at := 0.0 // days from now
	for i, rest := 0, left; rest > 1e-9; i++ {
		middle := at + share/2
		kept := math.Pow(persists, middle)
		sum += share * max(0, p.mean(i)+kept*excess)
		spread += share * p.deviation * math.Sqrt(max(1-kept*kept, middle/7)) // levels go on shifting
		worn += share * (1 - kept) * excess
		at, rest, share = at+share, rest-share, 1
	}
	// Days in a row differ in the same direction, and today's deviation may stay.
	sd := math.Hypot(spread, worn)
	expected := float64(accrued) + sum
	return Range{
		Low:      int64(max(float64(accrued), expected-z*sd)),
		Expected: int64(expected),
		High:     int64(expected + z*sd),
	}
}

// profile is the cost of days.
type profile struct {
	days      []float64 // today first, and those of its weekday
	deviation float64
}

// mean is the cost of a day, i days from today.
func (p *profile) mean(i int) float64 { return p.days[i%7] }

func profileOf(past []int64, now float64) profile {
	past = past[max(0, len(past)-7*weeks):]
	p := profile{days: make([]float64, 7)}
	if len(past) == 0 {
		for i := range p.days {
			p.days[i] = now
		}
		p.deviation = vague * now
		return p
	}
	all := 0.0
	for _, c := range past {
		all += float64(c)
	}
	all /= float64(len(past))
	count := make([]float64, 7)
	for i, c := range past {
		weekday := ((i-len(past))%7 + 7) % 7
		p.days[weekday] += float64(c)
		count[weekday]++
	}
	for i := range p.days {
		p.days[i] = (p.days[i] + trust*all) / (count[i] + trust)
	}
	// The deviation of a day from its weekday a week before shows how levels shift, which
	// its deviation from the mean does not. Of less than two weeks, shorter distances
	// are scaled up, as variances of levels that shift grow with time.
	apart := min(7, max(1, len(past)/2))
	squares := 0.0
	for i := apart; i < len(past); i++ {
		d := float64(past[i] - past[i-apart])
		squares += d * d * 7 / float64(apart)
	}
	// A few days tell little: they count as so many more that deviate vaguely.
	squares += trust * vague * all * vague * all
	p.deviation = math.Sqrt(squares / (float64(max(0, len(past)-apart)) + trust))
	return p
}
