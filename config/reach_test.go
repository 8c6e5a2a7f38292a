package config_test

import (
	"encoding"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// words are the settings of an organisation that are plain strings, or lists and mappings of them: names, and never paths or URLs.
var words = map[string]string{
	"id":                               "name",
	"model_paths[]":                    "path at the organisation's own endpoints, which the route table judges",
	"failure.read":                     "word",
	"failure.write":                    "word",
	"prices.gpus":                      "amounts by name",
	"prices.cpus":                      "amounts by name",
	"prices.runs[].usd_by_resolution":  "amounts by name",
	"prices.runs[].default_resolution": "name",
	"labels[].values[]":                "names",
	"brownouts[].message":              "text for people",
	"policies[].mode":                  "word",
	"labels[].name":                    "name",
	"classes[].id":                     "name",
	"classes[].operations[]":           "names of operations",
	"policies[].policy":                "name",
	"policies[].teams[]":               "names",
	"policies[].except_teams[]":        "names",
	"policies[].roles[]":               "names",
	"policies[].except_roles[]":        "names",
	"policies[].params":                "data of a policy, which reads nothing",
	"bundle.key.id":                    "name",
	"bundle.key.algorithm":             "name",
	"bundle.key.scope":                 "name",
	"exceptions[].id":                  "name",
	"exceptions[].policy":              "name",
	"exceptions[].teams[]":             "names",
	"exceptions[].keys[]":              "names",
	"exceptions[].roles[]":             "names",
	"exceptions[].operations[]":        "names of operations",
	"exceptions[].where":               "pointers into a body",
	"exceptions[].max_usd_per_hour":    "amount",
	"contact":                          "text for people",
	"exceptions[].reason":              "text for people",
	"exceptions[].granted_by":          "text for people",
	"teams[].id":                       "name",
	"teams[].renamed_from":             "name",
	"keys[].id":                        "name",
	"keys[].moved_from":                "name",
	"keys[].team":                      "name",
	"keys[].labels[]":                  "names",
	"keys[].owner":                     "text for people",
}

// suspicious are names of settings that lead somewhere.
var suspicious = regexp.MustCompile(`(^|_)(file|path|dir|directory|url|uri|host|address|addr|endpoint|server|socket|persist|proxy|listen)s?$`)

// Every setting of an organisation that is a path or a URL has a type that confines it: none is a plain string.
func TestPathsAndURLsOfOrganisationsHaveTypes(t *testing.T) {
	seen := map[string]bool{}
	walk(reflect.TypeFor[settings.Org](), "", func(path string, typ reflect.Type) {
		name := strings.TrimSuffix(path[strings.LastIndexByte(path, '.')+1:], "[]")
		switch {
		case typ.Kind() == reflect.Interface, typ.Kind() == reflect.String && !isEnum(typ):
			seen[path] = true
			if words[path] == "" {
				t.Errorf("%s is a plain %s: if it is a path or a URL, use a type of config/files or config/egress; otherwise say in words what it is", path, typ)
			} else if suspicious.MatchString(name) && name != "model_paths" {
				t.Errorf("%s has the name of a path or an address and is a plain %s", path, typ)
			}
		case typ == reflect.TypeFor[netip.Prefix]() && path != "keys[].addresses[]": // addresses that a key is accepted from
			t.Errorf("%s is a plain network: use egress.Network", path)
		}
	})
	for path := range words {
		if !seen[path] {
			t.Errorf("there is no plain string %s", path)
		}
	}
}

func isEnum(typ reflect.Type) bool {
	_, ok := reflect.TypeAssert[strictyaml.Enum](reflect.New(typ))
	return ok
}

// walk calls visit for each setting below a type, by its path in YAML, where [] stands for any item of a list and any value of a mapping.
func walk(typ reflect.Type, path string, visit func(path string, typ reflect.Type)) {
	_, text := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(typ))
	_, number := reflect.TypeAssert[strictyaml.NumberUnmarshaler](reflect.New(typ))
	switch {
	case text, number, typ == reflect.TypeFor[strictyaml.Secret](), typ == reflect.TypeFor[time.Duration]():
		visit(path, typ)
	case typ.Kind() == reflect.Pointer:
		walk(typ.Elem(), path, visit)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Interface, typ.Kind() == reflect.Map && typ.Elem().Kind() != reflect.Struct:
		visit(path, reflect.TypeFor[any]())
	case typ.Kind() == reflect.Slice, typ.Kind() == reflect.Map:
		walk(typ.Elem(), path+"[]", visit)
	case typ.Kind() == reflect.Struct:
		for f := range typ.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case options == "inline":
				walk(f.Type, path, visit)
			case name != "" && name != "-":
				walk(f.Type, strings.TrimPrefix(path+"."+name, "."), visit)
			}
		}
	default:
		visit(path, typ)
	}
}

// setting is YAML with one setting, at a path as walk has it.
func setting(path, value string) string {
	parts := strings.Split(path, ".")
	text := value
	for _, part := range slices.Backward(parts) {
		name, list := strings.CutSuffix(part, "[]")
		if list {
			text = "[" + text + "]"
		}
		text = "{" + name + ": " + text + "}"
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
}

// Whatever setting of an own file is a path, it leads nowhere but into the directory of the file, and where credential_files says; whatever
// is a URL leads to no address of this machine, its link, or a private network that is not listed. The settings are found by their types.
func TestNoSettingOfAnOwnFileEscapes(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{outside, "../outside", "link", "acme/../../outside", "/dev/zero", "/proc/self/environ", "pipe"}
	urls := []string{"https://127.0.0.1:8081/admin/keys", "https://localhost/", "https://[::1]/", "https://169.254.169.254/latest", "https://10.0.0.1/", "https://0.0.0.0/", "http://127.0.0.1:8081/"}
	values := map[reflect.Type][]string{
		reflect.TypeFor[files.Path](): paths, reflect.TypeFor[files.Target](): append(paths, "other.yaml", "acme.yaml"), reflect.TypeFor[files.Credential](): paths,
		reflect.TypeFor[egress.URL](): urls, reflect.TypeFor[egress.Network](): {"127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "0.0.0.0/0", "::ffff:10.0.0.0/104"},
	}
	secrets := make([]string, len(paths))
	for i, p := range paths {
		secrets[i] = "{file: ./" + p + "}"
		if filepath.IsAbs(p) {
			secrets[i] = "{file: " + p + "}"
		}
	}
	values[reflect.TypeFor[strictyaml.Secret]()] = secrets
	beside := map[string]string{ // what else a section requires
		"bundle.token_file": "bundle: {url: https://own.example/b.tar.gz, allow_unsigned: true, token_file: %s}",
		"bundle.persist":    "bundle: {url: https://own.example/b.tar.gz, allow_unsigned: true, persist: %s}",
		"bundle.file":       "bundle: {allow_unsigned: true, file: %s}",
		"bundle.url":        "bundle: {allow_unsigned: true, url: %s}",
		"bundle.key.file":   "bundle: {url: https://own.example/b.tar.gz, key: {file: %s}}",

		"alerts.webhook.url":        "alerts: {webhook: {secret: {env: KEY_ACME}, networks: [], url: %s}}",
		"alerts.webhook.secret":     "alerts: {webhook: {url: https://own.example/, secret: %s}}",
		"alerts.webhook.networks[]": "alerts: {webhook: {url: https://own.example/, secret: {env: KEY_ACME}, networks: [%s]}}",
	}
	found := 0
	walk(reflect.TypeFor[settings.Org](), "", func(path string, typ reflect.Type) {
		for _, bounds := range []string{"credential_files: []", "credential_env: [\"KEY_{id}\"]", "credential_files: [\"/run/secrets/{id}/*\"]"} {
			for _, value := range values[typ] {
				found++
				if !strings.HasPrefix(value, "{") {
					value = strconv.Quote(value)
				}
				text := setting(path, value)
				if format, ok := beside[path]; ok {
					text = fmt.Sprintf(format, value)
				}
				own := "id: acme\ncredential: {env: KEY_ACME}\n" + text + "\n"
				if path == "credential" {
					own = "id: acme\n" + text + "\n"
				}
				d := newTree(t, map[string]string{"conf.d/acme.yaml": own, "conf.d/acme/x": "", "conf.d/other.yaml": "id: other\ncredential: {env: KEY_OTHER}\n"})
				d.write("tollgate.yaml", "platform: {base_url: \"http://127.0.0.1:1\"}\nredis: {embedded: true}\norgs_files: conf.d/*.yaml\norg_bounds: {"+bounds+"}\n")
				err := syscall.Mkfifo(filepath.Join(d.dir, "conf.d", "pipe"), 0o600)
				if err == nil {
					err = os.Symlink(outside, filepath.Join(d.dir, "conf.d", "link"))
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = d.load(nil)
				got := strings.Join(d.faults(err), "\n")
				if at := strings.TrimSuffix(path, "[]"); !strings.Contains(got, "orgs[0]."+at) && !strings.Contains(got, "orgs[1]."+at) && !atRuntime(typ, value) {
					t.Errorf("%s: %s with %s passes: %q", path, value, bounds, got)
				}
			}
		}
	})
	if found < 100 {
		t.Errorf("%d cases: the walk finds no settings", found)
	}
}

// atRuntime reports values that no check finds, and that are refused when they are read: a pipe in the directory is confined.
func atRuntime(typ reflect.Type, value string) bool {
	return value == `"pipe"` && typ == reflect.TypeFor[files.Path]()
}

// A named pipe among the key files of one organisation is a fault of its own file: it holds up no other, and a load with it ends.
func TestAPipeAmongKeyFiles(t *testing.T) {
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", ""), "conf.d/beta.yaml": orgText("beta", "")})
	now, err := d.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(d.dir, "conf.d", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("conf.d/acme.yaml", orgText("acme", "key_files: [pipe]"))
	d.write("conf.d/beta.yaml", strings.Replace(orgText("beta", ""), "50", "60", 1))
	next, err := d.load(now)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.Config.RejectedFiles) != 1 || next.Config.RejectedFiles[0].Org != "acme" || !strings.Contains(next.Config.RejectedFiles[0].Fault, "key_files[0]") || served(next)["beta"] != 60 {
		t.Errorf("refused %+v, served %v", next.Config.RejectedFiles, served(next))
	}
}

// An organisation in a file of its own has at most as many keys as the bounds say.
func TestKeysOfAnOwnFileAreBounded(t *testing.T) {
	var list strings.Builder
	for i := range 3 {
		fmt.Fprintf(&list, "- {id: k%d, sha256: \"%064x\"}\n", i, i+1)
	}
	d := newTree(t, map[string]string{"conf.d/acme.yaml": orgText("acme", "key_files: [acme/keys.yaml]"), "conf.d/acme/keys.yaml": list.String()})
	for _, tt := range []struct {
		most int
		want []string
	}{{3, []string{}}, {2, []string{"conf.d/acme/keys.yaml:1:1: orgs[1].keys: has more than 2 entries"}}} {
		d.write("tollgate.yaml", strings.Replace(mainFile, "org_bounds:", fmt.Sprintf("org_bounds:\n  keys: %d", tt.most), 1))
		_, err := d.load(nil)
		if got := d.faults(err); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("at most %d: %q, want %q", tt.most, got, tt.want)
		}
	}
}
