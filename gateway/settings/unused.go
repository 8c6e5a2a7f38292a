package settings

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// unneeded is a setting that has no effect unless another setting is set.
type unneeded struct {
	path   string
	needed bool
	why    string
}

func warnUnneeded(list []unneeded, written func(path string) bool) fault.Found {
	var errs fault.Found
	for _, u := range list {
		errs.If(!u.needed && written(u.path), u.path, "%s", u.why)
	}
	return errs
}

// unused returns a warning for each setting that has no effect because of another setting. It does not check the settings of organisations.
func (c *Config) unused(written func(path string) bool) fault.Found {
	traced, run := c.Telemetry.OTLP.Endpoint != "", c.Platform.RunURL != ""
	logs := c.Decisions.File != nil || c.Decisions.Stdout || c.Decisions.Service != nil
	const noEndpoint, noLog, noRun = "has no effect without telemetry.otlp.endpoint",
		"has no effect unless decisions.file, decisions.stdout or decisions.service is set", "has no effect without platform.run_url"
	list := []unneeded{
		{"limits.lease", c.Limits.Mode == ratelimit.ModeLeased, "has no effect because limits.mode is exact"},
		{"telemetry.sample_ratio", traced, noEndpoint},
		{"telemetry.context.trusted", traced, noEndpoint},
		{"telemetry.otlp.headers", traced, noEndpoint},
		{"audit.sync", c.Audit.File != nil || !c.Audit.Sync, "has no effect without audit.file"},
		{"org_bounds", c.OrgsFiles != "", "has no effect without orgs_files, because it restricts only organisations in separate files"},
		{"decisions.mask", logs, noLog},
		{"decisions.labels", logs, noLog},
		{"decisions.inputs", logs || !c.Decisions.Inputs, noLog},
		{"decisions.sample_allowed", logs, noLog},
		{"legacy.keyless.limit", c.Legacy.Keyless.Org != "", "has no effect without legacy.keyless.org"},
		{"redis.prefix", !c.Redis.Embedded, "has no effect because no other installation shares the embedded store"},
		{"run.batches", run || !c.Run.Batches, noRun},
		{"run.websockets", run || c.Platform.BalancedURL != "", "has no effect without platform.run_url and platform.lb_url"},
		{"envoy.tls", c.Envoy.Listen != "", "has no effect without envoy.listen"},
		{"envoy.xds.token", len(c.Envoy.XDS.Groups) > 0, "has no effect without envoy.xds.groups"},
		{"envoy.xds.secrets", len(c.Envoy.XDS.Groups) > 0, "has no effect without envoy.xds.groups"},
		{"audit.webhook.secret", !c.Audit.Webhook.URL.IsZero(), "has no effect without audit.webhook.url"},
	}
	b := &c.Balancers
	errs := warnUnneeded(list, written)
	errs.If(len(b.Addresses) > 0 && !b.Protocol && b.Hops == 0 && !b.Traces, "balancers.addresses",
		"has no effect unless proxy_protocol, forwarded_hops or trace_context is set")
	errs.If(c.Connections.PerAddress > c.Connections.Total && c.Connections.Total > 0, "connections.per_address",
		"%d exceeds connections.total (%d), which is reached first", c.Connections.PerAddress, c.Connections.Total)
	errs.If(c.OrgsFiles != "" && len(c.RejectedFiles) == 0 && !slices.ContainsFunc(c.Orgs, func(o Org) bool { return o.File != "" }),
		"orgs_files", "does not match any file")
	return errs
}

// unwatched returns warnings about weights of teams that no limit uses, and about weekly reports without a receiver.
func (o *Org) unwatched(c *Config) fault.Found {
	var errs fault.Found
	errs.If(o.Alerts.Report.Weekday != "" && o.Alerts.Webhook.URL.IsZero() && c.Spend.Reports == "", "alerts.report",
		"is not sent to any receiver: set alerts.webhook.url or spend.reports")
	for i, t := range o.Teams {
		errs.If(t.Weight > 0 && !c.Limits.FairShare.Enabled, fault.Index("teams", i)+".weight", "has no effect without limits.fair_share.enabled")
	}
	return errs
}

// limitsAccrual reports whether a budget limits the cost accrued in a period or in total.
func limitsAccrual(b ledger.Budget) bool {
	limits := b.Limits()
	return slices.Max(limits[ledger.PerDay:ledger.InTotal+1]) > 0
}

// unused returns a warning for each setting of the organisation that has no effect because of another setting.
func (o *Org) unused(c *Config, written func(path string) bool) fault.Found {
	periods := o.anyBudget(limitsAccrual)
	webhook := !o.Alerts.Webhook.URL.IsZero()
	run := c.Platform.RunURL != "" || c.Platform.BalancedURL != ""
	errs := warnUnneeded([]unneeded{
		{"idle.action", webhook || o.Idle.Action != ledger.ActionNotify, "notify requires a receiver: set alerts.webhook.url"},
		{"idle.notice", o.Idle.Action == ledger.ActionStop, "has no effect unless idle.action is stop"},
		{"alerts.snooze_secret", o.Idle.For > 0, "has no effect without idle.for, because no idle notices are sent"},
		{"alerts.webhook.secret", webhook, "has no effect without alerts.webhook.url"},
		{"alerts.webhook.networks", webhook, "has no effect without alerts.webhook.url"},
		{"horizon", periods, "has no effect because no budget in the file has a period or a total"},
		{"isolation.exempt", o.Isolation.Applies(), "has no effect without isolation.read or isolation.change"},
		{"isolation.unowned", o.Isolation.Applies(), "has no effect without isolation.read or isolation.change"},
		{"model_paths", run || len(o.ModelPaths) == 0, "has no effect without platform.run_url"},
		{"prices.runs", run || len(o.Prices.Runs) == 0, "has no effect without platform.run_url"},
		{"bundle.token_file", o.Policies.Bundle != nil && !o.Policies.Bundle.URL.IsZero(), "has no effect without bundle.url"},
	}, written)
	errs.If(!o.RunCredential.IsZero() && !run, "run_credential", "has no effect because neither platform.run_url nor platform.lb_url is set")
	if b := o.Policies.Bundle; b != nil && b.Poll > 0 && b.Poll < time.Second {
		errs = append(errs, fault.Errorf("bundle.poll", "requests the bundle %d times per second; the default is 1m", time.Second/b.Poll))
	}
	over := func(at string, b *ledger.Budget, v ledger.OverBudgetAction) {
		stops := b.PerHour > 0 || limitsAccrual(*b) || b.GPUs > 0
		errs.If(v.Stop != "" && !stops, at+"over.stop", "has no effect without a cost budget or a budget of gpus")
		errs.If(v.Stop == "" && v.Notice > 0, at+"over.notice", "has no effect without over.stop")
	}
	over("", &o.Budget, o.Over)
	approvable := slices.ContainsFunc(o.Policies.Policies, func(e policyconfig.Entry) bool { return e.Approvable }) ||
		o.anyBudget(func(b ledger.Budget) bool { return b.Approvable })
	for i := range o.Teams {
		t, at := &o.Teams[i], fault.Index("teams", i)
		over(at+".", &t.Budget, t.Over)
		errs.If(t.Grants != Grants{} && !approvable, at+".grants", "has no effect because no policy or budget of the organisation is approvable")
	}
	for i := range o.Keys {
		k, at := &o.Keys[i], fault.Index("keys", i)
		for j, d := range k.Digests {
			errs.If(!k.Expires.IsZero() && !d.NotBefore.IsZero() && !d.NotBefore.Before(k.Expires), fault.Index(at+".digests", j)+".not_before",
				"is not before the expiry of the key, so the digest is never accepted")
		}
	}
	return errs
}

// anyBudget reports whether has returns true for a budget of the organisation, its teams, its keys or its issuers.
func (o *Org) anyBudget(has func(ledger.Budget) bool) bool {
	return has(o.Budget) || slices.ContainsFunc(o.Teams, func(t Team) bool { return has(t.Budget) }) ||
		slices.ContainsFunc(o.Keys, func(k Key) bool { return has(k.Budget) }) ||
		slices.ContainsFunc(o.Issued, func(i Issued) bool { return has(i.Budget) })
}
