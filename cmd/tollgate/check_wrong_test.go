package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wrong is a wrong configuration, made of a good one. § is where its fault or warning has its place.
type wrong struct {
	// top is put before the file, org into its organisation. The others replace what the file has.
	top, org, platform, redis, credential, teams, keys string
	// url is the value of REDIS_URL, key the value of ACME_PLATFORM_KEY.
	url, key string
	// want begins with the path.
	want string
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// text returns the file, and the line and column of its mark.
func (w *wrong) text(t *testing.T) (text string, line, column int) {
	t.Helper()
	text = or(w.top, "# nothing") + "\n" + or(w.platform, `platform: {base_url: "https://rest.acme.io"}`) + "\n" + or(w.redis, "redis: {url: {env: REDIS_URL}}") +
		"\norgs:\n  - id: acme\n    " + or(w.credential, "credential: {env: ACME_PLATFORM_KEY}") + "\n    " + strings.ReplaceAll(or(w.org, "# nothing"), "\n", "\n    ") +
		"\n    " + or(w.teams, "teams: [{id: research}]") + "\n    " + or(w.keys, `keys: [{id: ann, team: research, sha256: "`+strings.Repeat("5f", 32)+`"}]`) + "\n"
	before, after, ok := strings.Cut(text, "§")
	if !ok {
		return text, 0, 0
	}
	return before + after, 1 + strings.Count(before, "\n"), 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
}

// check runs the command on the file, and returns its exit code and what it says.
func (w *wrong) check(t *testing.T, dir, text string) (code int, said string) {
	t.Helper()
	t.Setenv("REDIS_URL", or(w.url, "redis://127.0.0.1:1"))
	t.Setenv("ACME_PLATFORM_KEY", or(w.key, "pk-1"))
	file := filepath.Join(dir, "tollgate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), []string{"check", file}, &stdout, &stderr)
	return code, strings.ReplaceAll(stderr.String(), dir+"/", "")
}

// placeOfWrong makes a directory with the files that the configurations name.
func placeOfWrong(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"logs", "logs/directory", "conf.d"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("decisions.log", filepath.Join(dir, "logs/link.log")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"junk.pem": "hush", "ec.pem": authority(t, time.Now()), "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, years := range map[string]int{"OLD": -2, "FUTURE": 2} {
		t.Setenv(name, authority(t, time.Now().AddDate(years, 0, 0)))
	}
	t.Setenv("ADMIN_TOKEN", "q8Zr-Vw2n-admin-secret-2")
	t.Setenv("SECRET", "whsec-0123456789-0123456789")
	t.Setenv("SPACED", "pk two")
	t.Setenv("LINES", "pk-1\npk-2")
	return dir
}

// authority returns a certificate of an authority in PEM, which is valid for a day around a time.
func authority(t *testing.T, at time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mesh"}, NotBefore: at.Add(-12 * time.Hour), NotAfter: at.Add(12 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestEachWrongConfigurationIsNamed: check names each fault and each doubt, at its place.
func TestEachWrongConfigurationIsNamed(t *testing.T) {
	dir := placeOfWrong(t)
	t.Chdir(dir)
	for name, good := range map[string]wrong{
		"nothing": {}, "a bundle with the default poll": {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true}`},
		"a bundle's key":    {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: ec.pem, algorithm: ES256}}`},
		"a bundle's secret": {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: junk.pem, algorithm: HS512}}`},
	} {
		if code, said := good.check(t, dir, first(good.text(t))); code != 0 || said != "" {
			t.Fatalf("the good configuration with %s: exit %d\n%s", name, code, said)
		}
	}
	for severity, list := range map[string]map[string]wrong{"": wrongFiles(), "warning: ": pointless(), " ": refusedValues(), "warning:  ": weak()} {
		for name, w := range list {
			t.Run(name, func(t *testing.T) {
				text, line, column := w.text(t)
				code, said := w.check(t, dir, text)
				warning := strings.TrimSpace(severity) != ""
				at := fmt.Sprintf("tollgate.yaml:%d:%d: ", line, column)
				if warning {
					at = "warning: " + at
				}
				if code != map[bool]int{true: 0, false: exitFailure}[warning] || !strings.Contains("\n"+said, "\n"+at+w.want) {
					t.Errorf("exit %d\n%swant %s%s\nin\n%s", code, said, at, w.want, text)
				}
			})
		}
	}
}

func first(text string, _, _ int) string { return text }

// wrongFiles do not start, or break later.
func wrongFiles() map[string]wrong {
	return map[string]wrong{
		"audit is a directory":        {top: "audit: {file: {path: §logs/directory}}", want: "audit.file.path: logs/directory is a directory; use a file in the directory"},
		"decisions is a directory":    {top: "decisions: {file: {path: §logs}}", want: "decisions.file.path: logs is a directory; use a file in the directory"},
		"audit is the file":           {top: "audit: {file: {path: §tollgate.yaml}}", want: "audit.file.path: tollgate.yaml is a file of the configuration, so the log would be appended to the configuration"},
		"audit in proc":               {top: "audit: {file: {path: §/proc/audit.log}}", want: "audit.file.path: /proc/audit.log cannot be created: /proc is a virtual file system"},
		"decisions in sys":            {top: "decisions: {file: {path: §/sys/kernel/decisions.log}}", want: "decisions.file.path: /sys/kernel/decisions.log cannot be created"},
		"one log by a link":           {top: "decisions: {file: {path: logs/decisions.log}}\naudit: {file: {path: §logs/link.log}}", want: "audit.file.path: is the same file as decisions.file, so the audit log could not be verified"},
		"decisions in rotated audit":  {top: "audit: {file: {path: logs/audit.log}}\ndecisions: {file: {path: §logs/audit.log.1}}", want: "decisions.file.path: is a name that rotation or delivery of audit.file uses, so the decision log would be replaced"},
		"audit in rotated decisions":  {top: "decisions: {file: {path: logs/d.log, keep: 3}}\naudit: {file: {path: §logs/d.log.3}}", want: "audit.file.path: is a name that rotated files of decisions.file have, so rotation would replace the audit log"},
		"decisions in audit's place":  {top: "audit: {file: {path: logs/audit.log}, otlp: {endpoint: \"http://127.0.0.1:4318\"}}\ndecisions: {file: {path: §logs/audit.log.otlp}}", want: "decisions.file.path: is a name that rotation or delivery of audit.file uses, so the decision log would be replaced"},
		"port of Redis":               {redis: "redis: {§url: {env: REDIS_URL}}", url: "redis://h:99999", want: `redis.url: "99999" is not a port: must be from 1 to 65535`},
		"port of a Sentinel":          {redis: "redis: {§url: {env: REDIS_URL}}", url: "redis+sentinel://a:26379,b:0/main", want: `redis.url: "0" is not a port`},
		"host of Redis":               {redis: "redis: {§url: {env: REDIS_URL}}", url: "redis://my host:6379", want: `redis.url: "my host" is not a host name or address`},
		"scheme of Redis":             {redis: "redis: {§url: {env: REDIS_URL}}", url: "http://h", want: `redis.url: unknown scheme "http": must be redis, rediss, redis+cluster`},
		"parameter of Redis":          {redis: "redis: {§url: {env: REDIS_URL}}", url: "redis://h?retries=3", want: `redis.url: unknown parameter "retries"`},
		"authority of Redis":          {redis: "redis: {§url: {env: REDIS_URL}}", url: "rediss://h?tls_ca=/nowhere/ca.pem", want: "redis.url: tls_ca: open /nowhere/ca.pem: no such file or directory"},
		"socket with a host":          {redis: "redis: {§url: {env: REDIS_URL}}", url: "unix://run/redis.sock", want: "redis.url: unix:// must be followed by the path of a socket, without a host, as in unix:///run/redis.sock"},
		"plain URL of Redis":          {redis: "redis: {url: §\"redis://h:99999\"}", want: `redis.url: "99999" is not a port`},
		"password in the file":        {redis: "redis: {url: §\"redis://:hush@h\"}", want: "redis.url: must not contain a URL with a user or password, because others can read, copy and log the file (write {env: NAME} or {file: PATH})"},
		"Sentinel's in the file":      {redis: "redis: {url: §\"redis+sentinel://a/main?sentinel_password=hush\"}", want: "redis.url: must not contain a URL with a user or password"},
		"token for a proxy":           {platform: `platform: {base_url: "https://rest.acme.io", proxy: §"http://hush@proxy.test:3128"}`, want: "platform.proxy: must not contain a URL with a user or password"},
		"Redis without a scheme":      {redis: "redis: {url: §\"h:6379\"}", want: "redis.url: is not a URL (begin with a scheme, as in redis://HOST:6379, or write {env: NAME} or {file: PATH})"},
		"proxy's in the file":         {platform: `platform: {base_url: "https://rest.acme.io", proxy: §"http://me:hush@proxy.test:3128"}`, want: "platform.proxy: must not contain a URL with a user or password"},
		"port of the platform":        {platform: `platform: {base_url: §"https://rest.acme.io:99999"}`, want: `platform.base_url: invalid port "99999": must be between 1 and 65535`},
		"port of runs":                {platform: `platform: {base_url: "https://rest.acme.io", run_url: §"https://run.acme.io:0"}`, want: `platform.run_url: invalid port "0"`},
		"port of the proxy":           {platform: `platform: {base_url: "https://rest.acme.io", proxy: §"http://proxy.test:70000"}`, want: `platform.proxy: invalid port "70000"`},
		"port of a collector":         {top: `telemetry: {otlp: {endpoint: §"http://127.0.0.1:65536"}}`, want: `telemetry.otlp.endpoint: invalid port "65536"`},
		"port of a log service":       {top: `decisions: {service: {url: §"https://logs.test:99999"}}`, want: `decisions.service.url: invalid port "99999"`},
		"port of a webhook":           {org: `alerts: {webhook: {url: §"https://hooks.test:99999/x", secret: {env: SECRET}}}`, want: `orgs[0].alerts.webhook.url: invalid port "99999"`},
		"port of an issuer":           {top: `issuers: [{id: corp, url: §"https://login.test:99999", audiences: [t], orgs: [acme], role: viewer}]`, want: `issuers[0].url: invalid port "99999"`},
		"credential of two lines":     {credential: "§credential: {env: LINES}", want: "orgs[0].credential: environment variable LINES contains a space, a line break or another character that is not permitted in a key"},
		"credential with a space":     {credential: "§credential: {env: SPACED}", want: "orgs[0].credential: environment variable SPACED contains a space, a line break or another character that is not permitted in a key"},
		"credential of runs":          {org: "§run_credential: {env: LINES}", want: "orgs[0].run_credential: environment variable LINES contains a space, a line break or another character that is not permitted in a key"},
		"reports nowhere":             {top: "spend: {reports: §nowhere/reports}", want: "spend.reports: nowhere/reports: no such file or directory"},
		"bundle's key nowhere":        {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: §/nowhere/key.pem}}`, want: "orgs[0].bundle.key.file: /nowhere/key.pem: no such file or directory"},
		"bundle's key of junk":        {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: §junk.pem, algorithm: ES256}}`, want: "orgs[0].bundle.key.file: junk.pem contains no EC public key in PEM, which the algorithm ES256 requires"},
		"bundle file's key of junk":   {org: `bundle: {file: nowhere.tar.gz, key: {file: §junk.pem, algorithm: ES256}}`, want: "orgs[0].bundle.key.file: junk.pem contains no EC public key in PEM, which the algorithm ES256 requires"},
		"bundle's key of another":     {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: §ec.pem}}`, want: "orgs[0].bundle.key.file: ec.pem contains no RSA public key in PEM, which the algorithm RS256 requires"},
		"bundle's empty secret":       {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: §empty, algorithm: HS256}}`, want: "orgs[0].bundle.key.file: empty contains no secret, which the algorithm HS256 requires"},
		"bundle nowhere":              {org: "§bundle: {file: nowhere.tar.gz, allow_unsigned: true}", want: "orgs[0].bundle: open nowhere.tar.gz: no such file or directory"},
		"bundle's token nowhere":      {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true, token_file: §/nowhere/token}`, want: "orgs[0].bundle.token_file: /nowhere/token: no such file or directory"},
		"bundle kept nowhere":         {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true, persist: §/nowhere/b.tar.gz}`, want: "orgs[0].bundle.persist: /nowhere: no such file or directory"},
		"bundle's token is no file":   {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true, token_file: §logs}`, want: "orgs[0].bundle.token_file: logs: not a regular file"},
		"bundle's key is no file":     {org: `bundle: {url: "https://b.test/b.tar.gz", key: {file: §logs}}`, want: "orgs[0].bundle.key.file: logs: not a regular file"},
		"bundle kept in no file":      {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true, persist: §logs}`, want: "orgs[0].bundle.persist: logs: not a regular file"},
		"keys in no file":             {org: "key_files: [§logs]", want: "orgs[0].key_files[0]: open logs: not a regular file"},
		"log's token nowhere":         {top: `decisions: {service: {url: "https://logs.test/", token_file: §/nowhere/token}}`, want: "decisions.service.token_file: /nowhere/token: no such file or directory"},
		"deadline of policies":        {top: "policies: {deadline: §1ns}", want: "policies.deadline: must be at least 1ms, got 1ns"},
		"timeout of calls":            {top: "timeouts: {call: §1ns}", want: "timeouts.call: must be at least 10ms, got 1ns"},
		"timeout of bodies":           {top: "timeouts: {body: §1ms}", want: "timeouts.body: must be at least 10ms, got 1ms"},
		"timeout of connections":      {top: "timeouts: {connect: §9ms}", want: "timeouts.connect: must be at least 10ms, got 9ms"},
		"negative overload":           {top: "overload: {working: §-1}", want: "overload.working: must not be negative, got -1"},
		"negative requests":           {top: "overload: {open: §-5}", want: "overload.open: must not be negative, got -5"},
		"audit rotated by line":       {top: "audit: {file: {path: logs/a.log, max_bytes: §10}}", want: "audit.file.max_bytes: must be at least 1024, got 10"},
		"decisions rotated by line":   {top: "decisions: {file: {path: logs/a.log, max_bytes: §1}}", want: "decisions.file.max_bytes: must be at least 1024, got 1"},
		"private webhook":             {org: `alerts: {§webhook: {url: "https://10.0.0.5/x", secret: {env: SECRET}}}`, want: "orgs[0].alerts.webhook.networks: must list the network of the receiver, such as 10.0.0.5/32"},
		"webhook beside the networks": {org: `alerts: {webhook: {url: "https://10.0.0.5/x", secret: {env: SECRET}, §networks: [10.1.0.0/16]}}`, want: "orgs[0].alerts.webhook.networks: must list the network of the receiver, such as 10.0.0.5/32"},
		"webhook on loopback":         {org: `alerts: {§webhook: {url: "http://localhost:9/x", secret: {env: SECRET}}}`, want: "orgs[0].alerts.webhook.networks: must list the network of the receiver, because localhost is a private host name"},
		"webhook of a cluster":        {org: `alerts: {§webhook: {url: "https://hooks.ops.svc/x", secret: {env: SECRET}}}`, want: "orgs[0].alerts.webhook.networks: must list the network of the receiver, because hooks.ops.svc is a private host name"},
		"private webhook of audit":    {top: "audit:\n  file: {path: logs/a.log}\n  §webhook: {url: \"https://192.168.1.9/x\", secret: {env: SECRET}}", want: "audit.webhook.networks: must list the network of the receiver, such as 192.168.1.9/32"},
		"key of the platform":         {key: "pk-9", keys: `keys: [§{id: ann, team: research, sha256: "` + digestOf("pk-9") + `"}]`, want: `orgs[0].keys[0]: is the platform key of organisation "acme"`},
		"token over http":             {top: "decisions: {service: {url: §\"http://logs.test/\", token_file: tollgate.yaml}}", want: "decisions.service.url: must be https if token_file is set, so that the token is encrypted"},
	}
}

// refusedValues are values that no setting takes; their faults say which one does.
func refusedValues() map[string]wrong {
	digest := strings.Repeat("5f", 32)
	return map[string]wrong{
		"no platform":            {platform: "log: {}", top: "§listen: 127.0.0.1:8080", want: "platform.base_url: is required: set the URL of the platform's REST API, such as https://api.platform.example"},
		"URL and embedded":       {redis: "§redis: {url: {env: REDIS_URL}, embedded: true}", want: "redis: must not set both url and embedded: true"},
		"neither":                {redis: "§redis: {}", want: "redis: must set url, or embedded: true for a single gateway whose data can be lost on restart"},
		"key for its digest":     {keys: "keys: [{id: ann, sha256: §tg_research_0123}]", want: `orgs[0].keys[0].sha256: must be the SHA-256 digest of the key or token, 64 hexadecimal digits, got 16 characters; printf %s "$KEY" | sha256sum prints it`},
		"digest of other digits": {keys: `keys: [{id: ann, sha256: §"` + strings.Repeat("zz", 32) + `"}]`, want: "orgs[0].keys[0].sha256: must be the SHA-256 digest of the key or token in hexadecimal digits"},
		"role of a key":          {keys: `keys: [{id: ann, roles: [§boss], sha256: "` + digest + `"}]`, want: `orgs[0].keys[0].roles[0]: unknown value "boss" (known: viewer, operator, admin, lead)`},
		"role of a policy":       {org: "policies: [{policy: read_only, roles: [§boss]}]", want: `orgs[0].policies[0].roles[0]: unknown role "boss", known: viewer, operator, admin, lead`},
		"team of a policy":       {org: "policies: [{policy: read_only, teams: [§operations]}]", want: `orgs[0].policies[0].teams[0]: unknown team "operations", known: research`},
		"integer":                {org: "limits: {minute: §many}", want: "orgs[0].limits.minute: expected an integer, found a string (write only digits, such as 60)"},
		"fraction":               {org: "limits: {minute: §1.5}", want: "orgs[0].limits.minute: expected an integer, found a number (write only digits, such as 60)"},
		"policies at the top":    {top: "policies: §[{policy: read_only}]", want: "policies: expected a mapping, found a list (move the key to orgs[].policies)"},
		"keys at the top":        {top: "§keys: []", want: "keys: unknown key (move the key to orgs[].keys)"},
		"keys under a team":      {teams: "teams: [{id: research, §keys: []}]", want: "orgs[0].teams[0].keys: unknown key (move the key to orgs[].keys)"},
		"policies under a team":  {teams: "teams: [{id: research, §policies: []}]", want: "orgs[0].teams[0].policies: unknown key (move the key to orgs[].policies)"},
		"teams by name":          {teams: "teams: §{research: {}}", want: "orgs[0].teams: expected a list, found a mapping (write - before each entry)"},
		"indentation":            {org: "limits: {minute: 5}\n §budget: {per_day: 1}", want: "not valid YAML: "},
		"time":                   {keys: `keys: [{id: ann, expires: §"2027", sha256: "` + digest + `"}]`, want: "orgs[0].keys[0].expires: must be a time with a time zone (write 2027-01-31T18:00:00Z, or 2027-01-31T18:00:00+01:00)"},
		"day for a time":         {keys: `keys: [{id: ann, expires: §2027-01-31, sha256: "` + digest + `"}]`, want: "orgs[0].keys[0].expires: must be a time with a time zone"},
		"address for a prefix":   {keys: `keys: [{id: ann, addresses: [§10.0.0.5], sha256: "` + digest + `"}]`, want: "orgs[0].keys[0].addresses[0]: must be an IP network such as 10.0.0.0/8 (write 10.0.0.5/32 for one address)"},
		"name for a prefix":      {top: "balancers: {addresses: [§envoy], forwarded_hops: 1}", want: "balancers.addresses[0]: must be an IP network such as 10.0.0.0/8"},
		"name for an address":    {top: "envoy: {xds: {advertise: §gateway-1}}", want: "envoy.xds.advertise: must be an IP address such as 10.0.0.5"},
		"address without a port": {top: "envoy: {xds: {gateways: [{data: §10.0.0.5, envoy: \"10.0.0.5:1\"}]}}", want: "envoy.xds.gateways[0].data: must be an IP address and a port, such as 10.0.0.5:8080"},
		"prefix of a webhook":    {org: `alerts: {webhook: {url: "https://10.0.0.5/x", secret: {env: SECRET}, networks: [§10.0.0.5]}}`, want: "orgs[0].alerts.webhook.networks[0]: must be an IP network such as 10.1.0.0/16"},
		"pattern of a file":      {top: "orgs_files: conf.d/*.yaml\norg_bounds: {credential_files: [§\"/run/[\"]}", want: `org_bounds.credential_files[0]: invalid pattern "/run/[": each [ must be closed by ]`},
		"certificate of nothing": {top: "tls: {§certificate: {env: SECRET}, key: {env: SECRET}}", want: "tls.certificate: environment variable SECRET contains no PEM certificate"},
		"key of nothing":         {top: "tls: {certificate: {env: OLD}, §key: {env: SECRET}}", want: "tls.key: environment variable SECRET contains no PEM private key"},
		"certificate alone":      {top: "§tls: {certificate: {env: OLD}}", want: "tls: must set both certificate and key"},
		"letter beyond ASCII":    {teams: "teams: [{id: research}, {id: §é}]", want: "orgs[0].teams[1].id: identifier contains 'é' at position 0: only printable ASCII characters except spaces and braces are allowed"},
		"Cyrillic key":           {keys: `keys: [{id: §аnn, sha256: "` + digest + `"}]`, want: "orgs[0].keys[0].id: identifier contains 'а' at position 0"},
	}
}
