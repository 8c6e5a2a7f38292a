package identity_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func directory(t *testing.T) *identity.Directory {
	t.Helper()
	d, err := identity.NewDirectory([]identity.Entry{
		{Digest: identity.DigestOf("tg_live_0001"), Caller: identity.Caller{Org: "acme", Team: "research", Key: "k1"}},
		{Digest: identity.DigestOf("tg_live_0002"), Caller: identity.Caller{Org: "acme", Key: "k2", Roles: []identity.Role{identity.RoleAdmin}}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFind(t *testing.T) {
	d := directory(t)
	for name, tc := range map[string]struct {
		key  string
		want string // id of the key, "" for unknown
	}{
		"known":                 {"tg_live_0001", "k1"},
		"another":               {"tg_live_0002", "k2"},
		"near miss":             {"tg_live_0003", ""},
		"other case":            {"TG_LIVE_0001", ""},
		"prefix":                {"tg_live_000", ""},
		"with a space":          {"tg_live_0001 ", ""},
		"empty":                 {"", ""},
		"too short":             {"tg", ""},
		"too long":              {strings.Repeat("a", 300), ""},
		"control characters":    {"tg_live_0001\r\nSET x", ""},
		"quote":                 {"x' OR 1=1--", ""},
		"digest instead of key": {identity.DigestOf("tg_live_0001").String(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := d.Find(t.Context(), identity.Credentials{Key: tc.key}, now)
			if tc.want == "" {
				if !errors.Is(err, identity.ErrUnknown) {
					t.Fatalf("Find = %v, %v, want ErrUnknown", c, err)
				}
				return
			}
			if err != nil || c.Key != tc.want {
				t.Fatalf("Find = %v, %v, want key %s", c, err, tc.want)
			}
		})
	}
}

// A caller without configured roles is an operator, no more.
func TestRoleNames(t *testing.T) {
	for _, tc := range []struct {
		roles []identity.Role
		want  []string
	}{
		{nil, []string{"operator"}},
		{[]identity.Role{identity.RoleViewer}, []string{"viewer"}},
		{[]identity.Role{identity.RoleAdmin, identity.RoleLead}, []string{"admin", "lead"}},
	} {
		c := identity.Caller{Roles: tc.roles}
		if got := c.RoleNames(); !slices.Equal(got, tc.want) {
			t.Errorf("roles %q: got %q, want %q", tc.roles, got, tc.want)
		}
	}
}

func TestTheZeroDigestIsNobody(t *testing.T) {
	d, err := identity.NewDirectory(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Find(t.Context(), identity.Credentials{Key: "tg_live_0001"}, now); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("err = %v, want ErrUnknown from an empty directory", err)
	}
}

func TestTwoCallersCannotShareAKey(t *testing.T) {
	e := identity.Entry{Digest: identity.DigestOf("tg_live_0001"), Caller: identity.Caller{Key: "a"}}
	f := e
	f.Caller.Key = "b"
	if _, err := identity.NewDirectory([]identity.Entry{e, f}, nil, nil); err == nil {
		t.Error("err = nil, want the clash named")
	}
}

func TestParseDigest(t *testing.T) {
	want := identity.DigestOf("tg_live_0001")
	got, err := identity.ParseDigest(want.String())
	if err != nil || got != want {
		t.Errorf("round trip = %v, %v", got, err)
	}
	for _, bad := range []string{"", "abc", strings.Repeat("g", 64), "tg_live_0001", strings.Repeat("0", 64)} {
		if _, err := identity.ParseDigest(bad); err == nil {
			t.Errorf("ParseDigest(%q): err = nil", bad)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("ParseDigest(%q) repeats its input: %v", bad, err)
		}
	}
}

func TestHolds(t *testing.T) {
	entry := func(change func(*identity.Entry)) identity.Entry {
		e := identity.Entry{Digest: identity.DigestOf("tg_live_0001"), Caller: identity.Caller{
			Org: "acme", Team: "research", Key: "k1", Roles: []identity.Role{identity.RoleOperator},
		}}
		change(&e)
		return e
	}
	directory := func(entries ...identity.Entry) *identity.Directory {
		d, err := identity.NewDirectory(entries, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	caller, err := directory(entry(func(*identity.Entry) {})).Find(t.Context(), identity.Credentials{Key: "tg_live_0001"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*identity.Entry)
		want   bool
	}{
		"the same":       {func(*identity.Entry) {}, true},
		"exempt now":     {func(e *identity.Entry) { e.Caller.Exempt = true }, true},
		"another key":    {func(e *identity.Entry) { e.Digest = identity.DigestOf("tg_live_0002") }, false},
		"another org":    {func(e *identity.Entry) { e.Caller.Org = "globex" }, false},
		"another team":   {func(e *identity.Entry) { e.Caller.Team = "" }, false},
		"another id":     {func(e *identity.Entry) { e.Caller.Key = "k2" }, false},
		"other roles":    {func(e *identity.Entry) { e.Caller.Roles = nil }, false},
		"from elsewhere": {func(e *identity.Entry) { e.Caller.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }, false},
		"lapses later":   {func(e *identity.Entry) { e.Caller.Until = now.Add(time.Second) }, true},
		"lapsed":         {func(e *identity.Entry) { e.Caller.Until = now }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := entry(tc.change)
			until, got := directory(d).StillAccepts(caller, now)
			if got != tc.want || got && until != d.Caller.Until {
				t.Errorf("Holds = %v, %v, want %v, %v", until, got, d.Caller.Until, tc.want)
			}
		})
	}
	if _, ok := directory().StillAccepts(&identity.Caller{Org: "acme", Key: "k1"}, now); ok {
		t.Error("a caller without a key is held")
	}
}

// During a rotation both keys are one caller, each in its own time: from is the
// first instant, until the first that is not.
func TestPeriods(t *testing.T) {
	caller := identity.Caller{Org: "acme", Team: "research", Key: "ci"}
	before := caller
	before.Until = now.Add(time.Hour)
	d, err := identity.NewDirectory([]identity.Entry{
		{Digest: identity.DigestOf("tg_live_0001"), Caller: before},
		{Digest: identity.DigestOf("tg_live_0002"), From: now, Caller: caller},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at            time.Time
		before, after string // the error with either key, "" for none
	}{
		{now.Add(-time.Nanosecond), "", "key ci of acme is accepted from 2026-11-22T12:00:00Z"},
		{now, "", ""},
		{now.Add(time.Hour - time.Nanosecond), "", ""},
		{now.Add(time.Hour), "key ci of acme is accepted until 2026-11-22T13:00:00Z", ""},
	} {
		for key, want := range map[string]string{"tg_live_0001": tc.before, "tg_live_0002": tc.after} {
			c, err := d.Find(t.Context(), identity.Credentials{Key: key}, tc.at)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != want || err != nil && !errors.Is(err, identity.ErrUnknown) {
				t.Errorf("Find(%s) at %v: err = %v, want %q, an ErrUnknown", key, tc.at, err, want)
			}
			if err == nil && (c.Org != "acme" || c.Team != "research" || c.Key != "ci") {
				t.Errorf("Find(%s) at %v = %+v, want the one caller", key, tc.at, c)
			}
		}
	}
}

// A key with addresses is accepted from those alone, however an address is written.
func TestAddresses(t *testing.T) {
	d, err := identity.NewDirectory([]identity.Entry{{Digest: identity.DigestOf("tg_live_0001"), Caller: identity.Caller{
		Org: "acme", Key: "ci", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::/32")},
	}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "2001:db8::1": true, "2001:db8::1%eth0": true,
		"10.2.2.3": false, "2001:db9::1": false, "": false, "10.1.2.3:80": false, "localhost": false,
	} {
		_, err := d.Find(t.Context(), identity.Credentials{Key: "tg_live_0001", Peer: peer}, now)
		if (err == nil) != want || err != nil && !errors.Is(err, identity.ErrUnknown) {
			t.Errorf("from %q: %v, want accepted: %v, or an ErrUnknown", peer, err, want)
		}
	}
}

// Keys made at run time stand beside the others of a directory, in the place of those made
// before; none may be one of the others.
func TestWith(t *testing.T) {
	entry := func(key, id string) identity.Entry {
		return identity.Entry{Digest: identity.DigestOf(key), Caller: identity.Caller{Org: "acme", Key: id}}
	}
	file, err := identity.NewDirectory([]identity.Entry{entry("key_of_the_file", "file")}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := file.WithChanges(nil, []identity.Entry{entry("key_made_first", "first")})
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.WithChanges([]identity.Digest{identity.DigestOf("key_made_first")}, []identity.Entry{entry("key_made_second", "second")})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		d    *identity.Directory
		key  string
		want string
	}{
		{"the file", file, "key_made_first", ""},
		{"the first", first, "key_of_the_file", "file"},
		{"the first", first, "key_made_first", "first"},
		{"the second", second, "key_of_the_file", "file"},
		{"the second", second, "key_made_first", ""},
		{"the second", second, "key_made_second", "second"},
	} {
		c, err := tt.d.Find(t.Context(), identity.Credentials{Key: tt.key}, time.Now())
		if got := err == nil; got != (tt.want != "") || got && c.Key != tt.want {
			t.Errorf("%s finds %q as %+v, %v, want %q", tt.name, tt.key, c, err, tt.want)
		}
		if tt.d.HasDigest(identity.DigestOf(tt.key)) != (tt.want != "") {
			t.Errorf("%s has %q: %t", tt.name, tt.key, tt.d.HasDigest(identity.DigestOf(tt.key)))
		}
		if c != nil {
			if _, ok := second.StillAccepts(c, time.Now()); ok != (tt.key != "key_made_first") {
				t.Errorf("the second holds the caller of %q: %t", tt.key, ok)
			}
		}
	}
	for name, entries := range map[string][]identity.Entry{
		"of the file": {entry("key_of_the_file", "again")}, "twice": {entry("key_x_and_x", "x"), entry("key_x_and_x", "y")},
	} {
		if _, err := file.WithChanges(nil, entries); err == nil {
			t.Errorf("a key %s is taken", name)
		}
	}
}
