package simulate

import (
	"flag"
	"os"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "run the whole simulation and write docs/regions.svg") //nolint:gochecknoglobals // a flag

// TestSimulate compares the ways to share quotas between regions. None admits more than
// a quota; leases from home lose little and hide the distance from most calls.
func TestSimulate(t *testing.T) {
	s := scale{gateways: 9, keys: 60, orgs: 12, rate: 4000, length: 10 * time.Second, key: 500, org: 2500}
	if *write {
		s = scale{gateways: 50, keys: 10_000, orgs: 500, rate: 25_000, length: 60 * time.Second, key: 12_000, org: 40_000}
	}
	results := make(map[string]result)
	var all []result
	for _, how := range strategies() {
		r := simulate(t, s, how)
		t.Logf("%s: %d calls, %d possible, %d admitted, %d too many, %.4f exchanges per call, fairness %.4f, %+v",
			r.name, r.calls, r.possible, r.admitted, r.tooMany, r.perCall(), r.fairness(), r.regions)
		if r.tooMany != 0 {
			t.Errorf("%s: %d calls were admitted beyond their quotas, want none", r.name, r.tooMany)
		}
		if r.admitted == 0 || r.possible >= r.calls*99/100 {
			t.Errorf("%s: %d of %d calls were admitted, of which %d had room: this tries no quota", r.name, r.admitted, r.calls, r.possible)
		}
		results[how.name] = r
		all = append(all, r)
	}
	exact, leased, equal := results["exact, from home"], results["leases from home, horizon 2 s"], results["equal shares"]
	if far := len(exact.regions) - 1; exact.regions[far].waited < 0.9 || leased.regions[far].waited > 0.75*exact.regions[far].waited {
		t.Errorf("far from home %.2f of the exact and %.2f of the leased calls waited, want all and three quarters at most",
			exact.regions[far].waited, leased.regions[far].waited)
	}
	if leased.lost() > equal.lost() {
		t.Errorf("leases lost %.3f of the calls, equal shares %.3f: want fewer", leased.lost(), equal.lost())
	}
	if *write && !t.Failed() {
		if err := os.WriteFile("../../docs/regions.svg", []byte(chart(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
