package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// An organisation in a file of its own is named after the file, has each bounded budget, and each enforced policy for all.
func TestJudge(t *testing.T) {
	t.Parallel()
	bounds := settings.OrgBounds{Budget: ledger.Budget{PerDay: 100_000_000}, Keys: 3, Enforce: []string{"gpu_allow_list"}}
	org := func(change func(o *settings.Org)) *settings.Org {
		o := &settings.Org{ID: "acme", File: "/orgs/acme.yaml", Budget: ledger.Budget{PerDay: 90_000_000}}
		o.Policies.Policies = []policyconfig.Entry{{Policy: "gpu_allow_list"}}
		change(o)
		return o
	}
	for name, tt := range map[string]struct {
		change func(o *settings.Org)
		fault  string // "" for none
	}{
		"within":         {func(*settings.Org) {}, ""},
		"another name":   {func(o *settings.Org) { o.ID = "globex" }, "id: must be \"acme\""},
		"no budget":      {func(o *settings.Org) { o.Budget = ledger.Budget{} }, "budget.per_day: must be set"},
		"a large budget": {func(o *settings.Org) { o.Budget.PerDay = 100_000_001 }, "budget.per_day: must be at most"},
		"approvable":     {func(o *settings.Org) { o.Budget.Approvable = true }, "budget.approvable: must be false"},
		"few workers":    {func(o *settings.Org) { o.Endpoints = ledger.WorkersMin }, "endpoints: must be max"},
		"expected costs": {func(o *settings.Org) { o.Runs.Reserve = ledger.ReserveExpected }, "runs.reserve: must be worst"},
		"a short time":   {func(o *settings.Org) { o.Horizon = ledger.Horizon(time.Minute) }, "horizon: must be at least 1h"},
		"the period":     {func(o *settings.Org) { o.Horizon = ledger.UntilPeriodEnd }, ""},
		"prices":         {func(o *settings.Org) { o.Prices.Discount = 10 }, "prices: must not be set"},
		"too many keys":  {func(o *settings.Org) { o.Keys = make([]settings.Key, 4) }, "keys: has 4 keys, at most 3"},
		"no policy":      {func(o *settings.Org) { o.Policies.Policies = nil }, "policies: must list gpu_allow_list"},
		"to be approved": {func(o *settings.Org) { o.Policies.Policies[0].Approvable = true }, "policies[0].approvable: must be false"},
		"warns":          {func(o *settings.Org) { o.Policies.Policies[0].Mode = policyconfig.ModeWarn }, "policies[0].mode: must be enforce"},
		"for some":       {func(o *settings.Org) { o.Policies.Policies[0].ExceptTeams = []string{"ops"} }, "must apply to all callers"},
		"an exception":   {func(o *settings.Org) { o.Policies.Exceptions = []policyconfig.Exception{{Policy: "gpu_allow_list"}} }, "must not have exceptions"},
		"one of all":     {func(o *settings.Org) { o.Policies.Exceptions = []policyconfig.Exception{{}} }, "must not have exceptions"},
	} {
		err := bounds.Check(org(tt.change))
		if tt.fault == "" && err != nil || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: %v, want %q", name, err, tt.fault)
		}
	}
}

// Prices of the organisation would lower what an enforced policy on prices compares.
func TestEnforcedPricePolicyRefusesPrices(t *testing.T) {
	t.Parallel()
	bounds := settings.OrgBounds{Enforce: []string{"price_ceiling"}}
	o := &settings.Org{ID: "acme", File: "/orgs/acme.yaml"}
	o.Policies.Policies = []policyconfig.Entry{{Policy: "price_ceiling"}}
	if err := bounds.Check(o); err != nil {
		t.Error(err)
	}
	o.Prices.GPUs = map[string]catalog.Money{"NVIDIA L4": 0}
	if err := bounds.Check(o); err == nil || !strings.Contains(err.Error(), "prices: must not be set") {
		t.Errorf("with a price: %v", err)
	}
}

// No secret of a key is accepted for longer than the key.
func TestAccepted(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	one, two, three := identity.DigestOf("one"), identity.DigestOf("two"), identity.DigestOf("three")
	k := settings.Key{ID: "ann", Expires: noon, Digests: []settings.Digest{
		{Digest: one}, {Digest: two, NotAfter: noon.Add(-time.Hour)}, {Digest: three, NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour)},
	}}
	want := []settings.Digest{
		{Digest: one, NotAfter: noon}, {Digest: two, NotAfter: noon.Add(-time.Hour)}, {Digest: three, NotBefore: noon.Add(-time.Hour), NotAfter: noon},
	}
	if diff := cmp.Diff(want, k.Accepted()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !k.Digests[0].NotAfter.IsZero() {
		t.Error("Accepted has changed the configuration")
	}
	if got := (&settings.Key{Digest: one}).Accepted(); len(got) != 1 || got[0] != (settings.Digest{Digest: one}) {
		t.Errorf("one secret without an end: %+v", got)
	}
	exempt := settings.Key{Exempt: true, Limit: ratelimit.Limit{Minute: 1}}
	if exempt.Quotas() != (ratelimit.Limit{}) {
		t.Errorf("an exempt key has quotas: %+v", exempt.Quotas())
	}
}
