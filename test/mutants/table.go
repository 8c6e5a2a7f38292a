package main

// mutants returns the changes, each the smallest that breaks a promise.
func mutants() []mutant {
	const (
		limiter = "./ratelimit"
		store   = "./ratelimit/redisstore"
		chain   = "./gateway/filter"
		engine  = "./policies"
		books   = "./policies/ledger"
		charge  = "./gateway/money"
	)
	return []mutant{
		{"calls of different cost are merged into one", "ratelimit/group.go", "return a.Cost == b.Cost && len", "return len", limiter, "Merged"},
		{"calls under different quotas are merged into one", "ratelimit/group.go", "slices.Equal(a.Scopes, b.Scopes)", "len(a.Scopes) == len(b.Scopes)", limiter, "Merged"},
		{"all calls probe a store that was away", "ratelimit/breaker.go", "	b.retry = now + spread(b.cooldown)\n	return true", "	return true", limiter, "Probes"},
		{"accounts that hold permits are forgotten first", "ratelimit/account.go", "return holdsB", "return holdsA", limiter, "Forgotten"},
		{"remembered scopes are bounded per shard", "ratelimit/account.go", "if b.size.Load() >= b.most {", "if s.size.Load() >= b.most/shards {", limiter, "Book"},
		{"permits are spent up to the end of their window", "ratelimit/lease.go", "now >= a.ends[w]-leaseMargin {\n				return false", "now >= a.ends[w] {\n				return false", limiter, "Margin"},
		{"permits of ended windows are brought along", "ratelimit/lease.go", "				a.held[w] = 0\n			}\n			d.units", "			}\n			d.units", limiter, "Margin"},
		{"what a call brought along stays with its flight", "ratelimit/group.go", "f.drawn[i], f.back[i] = drawn{}, [Windows]time.Duration{}", "f.back[i] = [Windows]time.Duration{}", limiter, "Flights"},
		{"returns of lost counts are not dropped", "ratelimit/run.go", "slices.Min(adj.Delta[:]) < 0", "slices.Min(adj.Delta[:]) < -1000", limiter, "Dropped"},
		{"a restored gateway does not drop its returns", "ratelimit/run.go", "		l.dropReturns()\n", "", limiter, "Restor|Restart|Lost"},
		{"a class takes what another scope may not give", "ratelimit/redisstore/apply.lua", "fit = math.min(fit, math.floor((q - s[2 * w + 1]) / req[p + 5 * i + 4]))", "fit = math.floor((q - s[2 * w + 1]) / req[p + 5 * i + 4])", store, "Contract/embedded"},
		{"each block is bounded, not the sum", "ratelimit/redisstore/apply.lua", "math.floor((q - s[2 * w + 1] + held) / divisor) - held)", "math.floor((q - s[2 * w + 1]) / divisor))", store, "Contract/embedded"},
		{"a clock that steps back opens windows again", "ratelimit/redisstore/apply.lua", "if s[2 * w] < current then s[2 * w], s[2 * w + 1] = current, 0 end\n  end\n  state[k]", "if s[2 * w] ~= current then s[2 * w], s[2 * w + 1] = current, 0 end\n  end\n  state[k]", store, "Contract/embedded"},
		{"a server that has lost writes is believed", "ratelimit/redisstore/apply.lua", "req[1] ~= epoch or req[2] > writes", "req[1] ~= epoch", store, "LostData"},
		{"a loss of data is not announced", "ratelimit/redisstore/writetracker.go", "from.announce = true", "from.epoch = -1", store, "LostData"},
		{"another loss is taken for the one restored", "ratelimit/redisstore/watch.go", "	if w.loss > 0 {", "	if w.loss > 1<<62 {", store, "LostData"},
		{"a class per team is counted per organisation", "gateway/filter/tenant.go", "id += \"/team/\" + caller.Team", "_ = caller", chain, "Classes"},
		{"exempt callers are counted in classes", "gateway/filter/ratelimit.go", "ex.Caller == nil || ex.Caller.Exempt {", "ex.Caller == nil {", chain, "Classes"},
		{"a mutation is counted as a read", "gateway/filter/ratelimit.go", "\tif mutates(ex) {\n\t\tclass", "\tif mutates(ex) && ex == nil {\n\t\tclass", chain, "Classes"},
		{"a ratchet takes a larger excess", "policies/ratchet.go", "return v.Excess <= other.Excess && kind", "return kind", engine, "CompareExcess"},
		{"one violation before excuses several", "policies/ratchet.go", "		before = slices.Delete(before, i, i+1)\n", "", engine, "Ratchets"},
		{"a ratchet compares with a price that is not known", "policies/ratchet.go", "out.Cost = Cost{Known: true}", "out.Cost = in.Cost", engine, "Ratchets"},
		{"an exception by role is for everyone", "policies/exception.go", "return slices.Contains(x.Roles, role)", "return len(x.Roles) > 0", engine, "Exceptions"},
		{"an exception that has ended lifts", "policies/exception.go", "in.Time.Before(x.From), !in.Time.Before(x.Until),", "in.Time.Before(x.From),", engine, "Exceptions"},
		{"what one policy said is remembered of others", "policies/policyinput/cache.go", "int64(variant)", "0", engine + "/policyinput", "CacheKeys"},
		{"what reads the time is remembered", "policies/policyinput/cache.go", "if m == nil || reads.Touches(\"time\") {", "if m == nil {", engine + "/policyinput", "CacheKeys"},
		{"a policy in warn refuses", "policies/result.go", "case mode == ModeWarn || c.Rule == \"warn\":", "case c.Rule == \"warn\":", engine, "Modes"},
		{"a policy that fails allows", "policies/verdict.go", "		if err != nil {\n			return fmt.Errorf(\"policy %s", "		if false {\n			return fmt.Errorf(\"policy %s", engine, "HostileRegoAtRun"},
		{"members that no resource has may be read", "policies/compiler/members.go", "if len(o.modules) == 0 {", "if len(o.modules) >= 0 {", engine + "/compiler", "UnknownMembers"},
		{"a directory drops policies in silence", "policies/reload.go", "if cfg.MayDrop || cfg.Directory.IsZero() {", "if !cfg.Directory.IsZero() || cfg.Directory.IsZero() {", engine, "MayNotDrop"},
		{"a persisted bundle that does not compile stops the gateway", "policies/reload.go", "err != nil && s != nil && ofRego(err)", "err != nil && s == nil && ofRego(err)", engine, "UnusablePersisted"},
		{"no verdict is a yes", "gateway/filter/evaluate.go", "		d, err := f.evaluate(ctx, ex)\n		if err != nil {\n			return d, err\n", "		d, err := f.evaluate(ctx, ex)\n		if err != nil {\n			return d, nil\n", chain, "WithoutAVerdict"},
		{"without prices every denial is temporary", "gateway/filter/evaluate.go", "return len(denied) > 0 && !slices", "return len(denied) > 0 || !slices", chain, "WithoutAVerdict"},
		{"roles are in force only when listed", "config/load.go", "[]string{\"account_changes\", \"roles\"}", "[]string{\"account_changes\"}", "./config", "InForceUnlessListed"},
		{"a key without roles is an admin", "gateway/identity/identity.go", "return []string{string(RoleOperator)}", "return []string{string(RoleAdmin)}", "./gateway/identity", "RoleNames"},
		{"a certificate of a server is one of a caller", "gateway/identity/certificate.go", "case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):", "case leaf == nil:", "./gateway/identity", "Certificates"},
		{"a revocation list that another has signed is believed", "gateway/identity/certificate.go", " || l.CheckSignatureFrom(issuer) != nil", "", "./gateway/identity", "Certificates"},
		{"a certificate stands in for a wrong key", "gateway/filter/authenticate.go", "		chain = nil // an invalid credential", "		_ = chain // an invalid credential", chain, "BesideCertificates"},
		{"what is reserved does not count", "policies/ledger/redisstore/reserve.lua", "used + reserved + needs > given[c + 1] then", "used + needs > given[c + 1] then", books + "/redisstore", "Contract/embedded"},
		{"a store that went back is believed", "policies/ledger/redisstore/common.lua", "ledger.epoch == epoch and (ledger.seq < seq or ledger.writes < written)", "false", books + "/redisstore", "."},
		{"a call under way is taken for a stranger's", "policies/ledger/reconcile.go", "err == nil && len(unknown) > 0 {", "err == nil && len(unknown) > 1<<30 {", books, "DuringAPass"},
		{"headers are not scrubbed of the platform's key", "gateway/upstream/upstream.go", "	cred.ScrubHeader(res.Header)\n", "", "./gateway/upstream", "Masks"},
		{"an update reserves nothing", "gateway/money/reserve.go", "!verb.Changes() {", "!verb.Changes() || verb == operation.VerbUpdate {", charge, "Reserved"},
		{"a repeat makes its own after one look instead of eight", "gateway/idempotency/wait.go", "minPolls = 8", "minPolls = 1", "./gateway/idempotency", "EightLooks"},
		{"one answer to callers at once instead of eight", "gateway/selfservice/selfservice.go", "const atOnce = 8", "const atOnce = 1", "./gateway/selfservice", "AtOnce"},
		{"a caller sees what is another's", "gateway/selfservice/selfservice.go", "case p.Name == \"key\" && !leads(c):", "case p.Name == \"key\" && c.Team == \"\":", "./gateway/selfservice", "AboutTheCaller"},
		{"a request behind another one is never answered", "gateway/wire/listener.go", "c.spare = slices.Concat(p[to:n], c.spare)", "c.spare = slices.Concat(p[to:to], c.spare)", "./gateway/wire", "."},
		{"a bundle may lack what the last one had", "policies/bundle/source.go", "		err = s.cfg.admit(s.org, last, mine)\n	}\n	return &Found", "		_ = last\n	}\n	return &Found", engine + "/bundle", "Verified"},
		{"bundles are not verified", "policies/bundle/archive.go", "if verify != nil {", "if verify != nil && verify == nil {", engine + "/bundle", "Verified"},
		{"an older revocation takes the place of a later one", "gateway/callers/tokens.go", "have != nil && !next.Later(have) {", "have != nil && next.At.IsZero() {", "./gateway/callers", "LaterRevocation"},
		{"callers are shown the policies of others", "gateway/callers/access.go", "if !e.AppliesTo(a.Team, a.Roles) {", "if e.Policy == \"\" {", "./gateway/callers", "OfACaller"},
		{"secrets outlive their key", "gateway/settings/key.go", "d.NotAfter.After(k.Expires)", "d.NotAfter.Before(k.Expires)", "./gateway/settings", "Accepted"},
		{"what is reserved is not near the budget", "gateway/money/responses.go", "(adminapi.Decimal(b.Used) + adminapi.Decimal(b.Reserved))", "adminapi.Decimal(b.Used)", "./gateway/money", "Near"},
		{"parts of clusters are counted twice", "gateway/upstream/inventory.go", "if record[\"cluster\"] != nil || catalog", "if catalog", "./gateway/upstream", "Inventory"},
		{"a list that cannot be read is an empty one", "gateway/upstream/inventory.go", "		if row.Optional && meansEmpty(", "		if err != nil || row.Optional && meansEmpty(", "./gateway/upstream", "Inventory"},
		{"half a stream ends as a whole one", "gateway/reverseproxy/handler.go", "		panic(http.ErrAbortHandler)\n", "", "./gateway/reverseproxy", "."},
		{"a large volume has one rate", "policies/catalog/config.go", "r.StandardAbove == 0 ||", "r.StandardAbove >= 0 ||", engine + "/catalog", "Price"},
	}
}
