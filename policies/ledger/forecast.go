package ledger

import "math"

// Range is an estimate in micro-dollars. The actual value lies between Low and High in about eight of ten forecasts; docs/spend.md
// reports measurements over simulated months.
type Range struct{ Low, Expected, High int64 }

const (
	// persists is the share of today's deviation that remains a day later.
	persists = 0.8
	// weeks is the number of weeks of history that forecasts use.
	weeks = 8
	// trust is the number of days of one weekday that weigh as much as all days together.
	trust = 2.0
	// z is the half-width of a range in standard deviations: 80 % of a normal distribution.
	z = 1.28
	// vague is the relative standard deviation assumed for a day without history.
	vague = 0.25
)

// Forecast estimates the cost accrued at the end of a period. accrued is the cost accrued so far, and burn is the current rate in
// micro-dollars per hour. history contains the costs of the whole days before today in chronological order. daysLeft is the number of days
// remaining, including the rest of today.
//
// Each day is expected to cost the average of its weekday. The deviation of the current rate from that average is expected to decay: 80 %
// of it remain a day later.
func Forecast(accrued, burn int64, history []int64, daysLeft float64) Range {
	now := float64(burn) * 24
	p := profileOf(history, now)
	excess := now - p.mean(0)
	sum, spread, worn := 0.0, 0.0, 0.0
	share := daysLeft - math.Floor(daysLeft)
	if share == 0 && daysLeft > 0 {
		share = 1
	}
	at := 0.0 // days from now
	for i, rest := 0, daysLeft; rest > 1e-9; i++ {
		middle := at + share/2
		kept := math.Pow(persists, middle)
		sum += share * max(0, p.mean(i)+kept*excess)
		spread += share * p.deviation * math.Sqrt(max(1-kept*kept, middle/7)) // levels keep shifting
		worn += share * (1 - kept) * excess
		at, rest, share = at+share, rest-share, 1
	}
	// Consecutive days deviate in the same direction, and today's deviation may persist.
	sd := math.Hypot(spread, worn)
	expected := float64(accrued) + sum
	return Range{
		Low:      int64(max(float64(accrued), expected-z*sd)),
		Expected: int64(expected),
		High:     int64(expected + z*sd),
	}
}

// profile describes the cost of days.
type profile struct {
	days      []float64 // mean cost of each weekday, today first
	deviation float64
}

// mean returns the expected cost of the day i days from today.
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
	// The deviation of a day from the same weekday a week earlier shows how levels shift, which its deviation from the mean does not. With
	// less than two weeks of history, shorter distances are scaled up, because variances of shifting levels grow with time.
	apart := min(7, max(1, len(past)/2))
	squares := 0.0
	for i := apart; i < len(past); i++ {
		d := float64(past[i] - past[i-apart])
		squares += d * d * 7 / float64(apart)
	}
	// A few days say little: add assumed days with a large deviation.
	squares += trust * vague * all * vague * all
	p.deviation = math.Sqrt(squares / (float64(max(0, len(past)-apart)) + trust))
	return p
}
