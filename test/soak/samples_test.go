package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is the memory, goroutines and files of a gateway at a moment.
type sample struct {
	at     time.Duration // since the first
	values map[string]float64
}

// bound is how much a quantity may grow from the end of the warm-up to the end of a run: by the
// part that is always in motion, and by a part of its mean.
type bound struct {
	quantity    string
	least, part float64
}

// bounds are those of every run, however long: what leaks by the hour grows by as much in each minute.
func bounds() []bound {
	return []bound{
		{"heap", 4 << 20, 0.10},
		// Idle connections to the platform and to Redis, which are bounded by themselves.
		{"goroutines", 60, 0.10},
		{"descriptors", 30, 0.10},
		// The first call of a kind brings the buckets of a histogram or two.
		{"series", 60, 0.02},
		{"lasting keys", 3, 0.05},
	}
}

// growth returns by how much a quantity grows over the samples. The slope is the median of those
// between any two (Theil and Sen), which a single high sample does not bend.
func growth(samples []sample, quantity string) (grown, mean float64) {
	var slopes []float64
	for i, a := range samples {
		mean += a.values[quantity] / float64(len(samples))
		for _, b := range samples[i+1:] {
			slopes = append(slopes, (b.values[quantity]-a.values[quantity])/(b.at-a.at).Seconds())
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2] * (samples[len(samples)-1].at - samples[0].at).Seconds(), mean
}

// check fails for each quantity that grows. The first third of the samples is the warm-up.
func check(samples []sample) (faults []string) {
	settled := samples[len(samples)/3:]
	for _, b := range bounds() {
		grown, mean := growth(settled, b.quantity)
		if most := max(b.least, b.part*mean); grown > most {
			faults = append(faults, fmt.Sprintf("%s grew by %.0f, from a mean of %.0f, more than %.0f:%s", b.quantity, grown, mean, most, course(samples, b.quantity)))
		}
	}
	return faults
}

// course writes a quantity's samples.
func course(samples []sample, quantity string) string {
	var s strings.Builder
	for _, x := range samples {
		fmt.Fprintf(&s, " %.0f", x.values[quantity])
	}
	return s.String()
}

func TestGrowthIsFound(t *testing.T) {
	run := func(heap func(i int) float64) []sample {
		var samples []sample
		for i := range 30 {
			samples = append(samples, sample{time.Duration(i) * time.Second, map[string]float64{
				"heap": heap(i), "goroutines": 100, "descriptors": 30, "series": 500, "lasting keys": 10,
			}})
		}
		return samples
	}
	const mb = 1 << 20
	for _, tc := range []struct {
		name string
		heap func(i int) float64
		want int
	}{
		{"level", func(int) float64 { return 30 * mb }, 0},
		{"a warm-up", func(i int) float64 { return min(30, 10+4*float64(i)) * mb }, 0},
		{"up and down", func(i int) float64 { return (30 + 8*float64(i%2)) * mb }, 0},
		{"one that stands out at the end", func(i int) float64 { return (30 + 60*float64(i/29)) * mb }, 0},
		{"a leak", func(i int) float64 { return (30 + float64(i)) * mb }, 1},
		{"a leak below noise", func(i int) float64 { return (30 + float64(i) + 8*float64(i%2)) * mb }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := check(run(tc.heap)); len(got) != tc.want {
				t.Errorf("faults %q, want %d", got, tc.want)
			}
		})
	}
}
