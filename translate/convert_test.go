package translate

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestEnv(t *testing.T) {
	tests := map[string]struct {
		in      any
		want    map[string]string
		wantErr string
	}{
		"strings kept": {in: map[string]any{"a": "b", "": "x"}, want: map[string]string{"a": "b", "": "x"}},
		"scalars become text": {
			in:   map[string]any{"t": true, "i": json.Number("1"), "f": json.Number("1.5"), "n": nil},
			want: map[string]string{"t": "true", "i": "1", "f": "1.5", "n": ""},
		},
		"nested":     {in: map[string]any{"a": []any{}}, wantErr: `"a": expected string, number or boolean`},
		"not object": {in: []any{}, wantErr: "expected object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Env(tt.in)
			if errText(err) != tt.wantErr {
				t.Fatalf("Env error = %q, want %q", errText(err), tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Env (-want +got):\n%s", diff)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPorts(t *testing.T) {
	tests := map[string]struct {
		in      any
		want    []string
		wantErr string
	}{
		"array in order": {in: []any{"22/tcp", " 80/http "}, want: []string{"22/tcp", "80/http"}},
		"comma text":     {in: "8888/http, 22/tcp,,", want: []string{"8888/http", "22/tcp"}},
		"empty array":    {in: []any{}, want: []string{}},
		"number inside":  {in: []any{json.Number("80")}, wantErr: "expected array of strings"},
		"no protocol":    {in: []any{"80"}, want: []string{"80"}},
		"object":         {in: map[string]any{}, wantErr: "expected array of strings"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Ports(tt.in)
			if errText(err) != tt.wantErr {
				t.Fatalf("Ports error = %q, want %q", errText(err), tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseArgs(t *testing.T) {
	tests := map[string]struct {
		in   string
		want Command
	}{
		"empty":            {"", Command{}},
		"words":            {"python main.py", Command{Cmd: []string{"python", "main.py"}}},
		"quotes":           {`bash -c 'sleep 1; exit'`, Command{Cmd: []string{"bash", "-c", "sleep 1; exit"}}},
		"unbalanced quote": {`bash -c 'x`, Command{Cmd: []string{"bash -c 'x"}}},
		"object":           {`{"entrypoint":["sh"],"cmd":["-c","x y"]}`, Command{Entrypoint: []string{"sh"}, Cmd: []string{"-c", "x y"}}},
		"object cmd only":  {` {"cmd":["a"]}`, Command{Cmd: []string{"a"}}},
		"other case":       {`{"CMD":["a"]}`, Command{Cmd: []string{`{CMD:[a]}`}}},
		"broken object":    {`{cmd`, Command{Cmd: []string{"{cmd"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ParseArgs(tt.in), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ParseArgs(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestCommandArgs(t *testing.T) {
	tests := map[string]struct {
		in    Command
		args  string
		shell string
	}{
		"empty":      {Command{}, "", ""},
		"cmd":        {Command{Cmd: []string{"a", "b c"}}, `{"cmd":["a","b c"]}`, `a 'b c'`},
		"entrypoint": {Command{Entrypoint: []string{"sh"}}, `{"entrypoint":["sh"]}`, `{"entrypoint":["sh"]}`},
		"both": {
			Command{Entrypoint: []string{"sh", "-c"}, Cmd: []string{"a && b > c"}},
			`{"entrypoint":["sh","-c"],"cmd":["a && b > c"]}`,
			`{"entrypoint":["sh","-c"],"cmd":["a && b > c"]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.in.Args(); got != tt.args {
				t.Errorf("Args() = %s, want %s", got, tt.args)
			}
			if got := tt.in.Shell(); got != tt.shell {
				t.Errorf("Shell() = %s, want %s", got, tt.shell)
			}
			if diff := cmp.Diff(tt.in, ParseArgs(tt.in.Args()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ParseArgs(Args()) (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatTime(t *testing.T) {
	tests := []struct{ in, layout, want string }{
		{"2026-01-02T03:04:05Z", LegacyTime, "2026-01-02T03:04:05.000Z"},
		{"2026-01-02T03:04:05.6789+02:00", LegacyTime, "2026-01-02T01:04:05.678Z"},
		{"2026-01-02T03:04:05Z", ScriptTime, "Fri Jan 02 2026 03:04:05 GMT+0000 (Coordinated Universal Time)"},
		{"yesterday", LegacyTime, "yesterday"},
		{"yesterday", ScriptTime, "yesterday"},
		{"", LegacyTime, ""},
		{"Z", ScriptTime, "Z"},
		{"2026-02-30T03:04:05.000Z", LegacyTime, "2026-02-30T03:04:05.000Z"},
		{"2026-02-30T03:04:05.000Z", ScriptTime, "2026-02-30T03:04:05.000Z"},
		{"2026-01-02T3:04:05Z", ScriptTime, "Fri Jan 02 2026 03:04:05 GMT+0000 (Coordinated Universal Time)"},
	}
	for _, tt := range tests {
		if got := FormatTime(tt.in, tt.layout); got != tt.want {
			t.Errorf("FormatTime(%q, %q) = %q, want %q", tt.in, tt.layout, got, tt.want)
		}
	}
}

// TestFormatTimeIsTheStandardLibrarys, with any shortcut it takes.
func TestFormatTimeIsTheStandardLibrarys(t *testing.T) {
	digit := rapid.StringMatching(`[0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringMatching(`(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,9})?(Z|\+0[0-9]:[0-6]0|-12:00)`),
			rapid.StringMatching(`2026-1?[0-9]-[0-9]{1,2}[Tt ][0-9]{1,2}:00:00[.,]?[0-9]*Z?`),
		).Draw(t, "time")
		if at := rapid.IntRange(0, 3*len(s)).Draw(t, "at"); at < len(s) {
			s = s[:at] + digit.Draw(t, "digit") + s[at+1:]
		}
		for _, layout := range []string{LegacyTime, ScriptTime} {
			want := s
			if parsed, err := time.Parse(time.RFC3339Nano, s); err == nil {
				want = parsed.UTC().Format(layout)
			}
			if got := FormatTime(s, layout); got != want {
				t.Fatalf("FormatTime(%q, %q) = %q, want %q", s, layout, got, want)
			}
		}
	})
}

func TestLocation(t *testing.T) {
	for id, want := range map[string]string{
		"US-TX-3": "US", "CA-MTL-1": "CA", "EU-RO-1": "RO", "EUR-IS-2": "IS", "AP-JP-1": "JP",
		"OC-AU-1": "AU", "": "", "nowhere": "", "EU-ro-1": "", "EU-1": "", "EU-ROM-1": "",
	} {
		if got := Location(id); got != want {
			t.Errorf("Location(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestUserIDIsStableAndPerAccount(t *testing.T) {
	a, again, b := UserID("acme"), UserID("acme"), UserID("globex")
	if a != again || a == b {
		t.Errorf("UserID: acme %q, again %q, globex %q", a, again, b)
	}
	if len(a) != len("user_")+26 {
		t.Errorf("len(UserID) = %d, want %d", len(a), len("user_")+26)
	}
}

func TestPowerOfTwo(t *testing.T) {
	for in, want := range map[int64]int64{-4: 2, 0: 2, 2: 2, 3: 4, 4: 4, 5: 8, 1 << 20: 1 << 20, 1<<20 + 1: 0, 1 << 62: 0} {
		if got := PowerOfTwo(in); got != want {
			t.Errorf("PowerOfTwo(%d) = %d, want %d", in, got, want)
		}
	}
}

func TestAtLeastCUDA(t *testing.T) {
	got := AtLeastCUDA([]string{"12.2", "12.11", "11.8", "13", "x.y", "13.0"}, "12.3")
	if diff := cmp.Diff([]string{"12.11", "13.0"}, got); diff != "" {
		t.Errorf("AtLeastCUDA (-want +got):\n%s", diff)
	}
}

func TestInteger(t *testing.T) {
	tests := []struct {
		in   any
		want int64
		ok   bool
	}{
		{json.Number("20"), 20, true},
		{json.Number("20.0"), 20, true},
		{json.Number("2e1"), 20, true},
		{json.Number("-3"), -3, true},
		{json.Number("20.5"), 0, false},
		{json.Number("1e400"), 0, false},
		{json.Number("1e999999999"), 0, false},
		{json.Number("9007199254740993"), 9007199254740992, true},
		{json.Number("9007199254740995"), 0, false},
		{"20", 0, false},
		{nil, 0, false},
		{true, 0, false},
	}
	for _, tt := range tests {
		got, ok := Integer(tt.in)
		if got != tt.want || ok != tt.ok {
			t.Errorf("Integer(%v) = %d, %t, want %d, %t", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDesiredStatus(t *testing.T) {
	for in, want := range map[string]string{
		"PROVISIONING": Running, "STARTING": Running, "RUNNING": Running, "EXITED": Exited,
		"ERROR": Exited, "TERMINATED": Terminated, "SOMETHING": Running, "": Running,
	} {
		if got := DesiredStatus(in); got != want {
			t.Errorf("DesiredStatus(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIsCapacity(t *testing.T) {
	for detail, want := range map[string]bool{
		"There are no longer any instances available with the requested specifications": true,
		"There are No Instances currently available":                                    true,
		"not enough free GPUs on the host machine to start this pod":                    true,
		"This machine does not have the resources to deploy your pod":                   true,
		"no available machine":               true,
		"gpu and cpu are mutually exclusive": false,
		"":                                   false,
	} {
		if got := IsCapacity(detail); got != want {
			t.Errorf("IsCapacity(%q) = %t, want %t", detail, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"": time.Second, "0": time.Second, "-5": time.Second, "x": time.Second, "7": 7 * time.Second,
		"99999999": 24 * time.Hour,
	} {
		r := &Response{Header: map[string][]string{"Retry-After": {in}}}
		if got := r.RetryAfter(); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", in, got, want)
		}
	}
}

// BenchmarkUnique: doubling the list doubles the work.
func BenchmarkUnique(b *testing.B) {
	for _, n := range []int{8000, 16000} {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strconv.Itoa(i)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Unique(texts)
			}
		})
	}
}
