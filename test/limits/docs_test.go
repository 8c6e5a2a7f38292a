package limits

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/ratelimits.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheExampleIsGood reads the configuration that the documentation shows.
func TestTheExampleIsGood(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(document(t))
	if m == nil {
		t.Fatal("docs/ratelimits.md shows no configuration")
	}
	text := m[1] + "platform: {base_url: \"http://127.0.0.1:1\"}\n"
	loaded, err := config.Parse("example.yaml", []byte(text), config.Sources{Env: func(name string) (string, bool) {
		return map[string]string{"REDIS_URL": "redis://127.0.0.1:6379", "ACME_KEY": credential}[name], true
	}}, operator.Validator{})
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Config.Redis.Prefix; got != "production:" {
		t.Errorf("the prefix that is passed on is %q, want the example's", got)
	}
}

// TestEverySettingIsDocumented compares the table of settings, names and defaults,
// with the configuration.
func TestEverySettingIsDocumented(t *testing.T) {
	want := make(map[string]string)
	table(reflect.ValueOf(settings.Default().Limits), "", want)
	got := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\| `?([^`|]+?)`? \\| [^|]+\\|$").FindAllStringSubmatch(document(t), -1) {
		if _, ok := want[m[1]]; ok {
			got[m[1]] = m[2]
		}
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("limits.%s: documented default %q, want %q", name, got[name], value)
		}
	}
}

// table lists the settings below v by their paths, with their values.
func table(v reflect.Value, path string, into map[string]string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		at := path + name
		switch {
		case name == "-":
		case name == "":
			table(v.Field(i), path, into)
		case field.Type.Kind() == reflect.Struct:
			table(v.Field(i), at+".", into)
		default:
			into[at] = fmt.Sprint(v.Field(i).Interface())
		}
	}
}
