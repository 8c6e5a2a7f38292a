package ui_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/test/world"
)

var update = flag.Bool("update", false, "rewrite golden files")

// varying matches the parts that differ between two logins: values of cookies, times.
var varying = regexp.MustCompile(`(tollgate_session=)[A-Z2-7]+|(datetime=")[^"]+|(>)\d{4}-\d\d-\d\d \d\d:\d\d UTC|(\?v=)[0-9a-f]+|(As of )[-0-9: ]+UTC`)

// A login stays as it was: its pages, its redirects and its cookies, at both consoles.
func TestLoginIsGolden(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	operators, ofCallers := start(t, text, store), startTeam(t, teamText, store)
	var got strings.Builder
	for _, one := range []struct {
		console     *console
		base, token string
	}{{operators, "/ui/", "token_vera"}, {ofCallers, "/tollgate/ui/", "key_of_ann"}} {
		p := one.console.visitor(t)
		tell := func(what string, status int, header http.Header, body string) {
			fmt.Fprintf(&got, "-- %s%s --\n%d\n", one.base, what, status)
			for _, name := range []string{"Location", "Set-Cookie", "Cache-Control"} {
				if value := header.Get(name); value != "" {
					fmt.Fprintf(&got, "%s: %s\n", name, varying.ReplaceAllString(value, "$1$2$3$4$5..."))
				}
			}
			fmt.Fprintf(&got, "\n%s\n", strings.TrimSpace(varying.ReplaceAllString(body, "$1$2$3$4$5...")))
		}
		login := one.console.URL + one.base + "login"
		ask := func(what string, form url.Values) {
			status, header, body := p.post(login, form)
			tell(what, status, header, body)
		}
		status, header, body := p.get(login)
		tell("login", status, header, body)
		ask("login, a wrong token", url.Values{"token": {"token_nobody"}})
		ask("login, the right one", url.Values{"token": {one.token}, "next": {one.base + "cost"}})
		status, header, body = p.post(one.console.URL+one.base+"logout", nil)
		tell("logout", status, header, body)
	}
	world.Golden(t, update, "testdata/login.golden", got.String())
}
