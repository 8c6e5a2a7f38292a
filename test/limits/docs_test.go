package limits

import (
	"os"
	"regexp"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
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
