package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// fakeIssuer is an issuer with the device flow and the code flow. Its first tokens have expired when they arrive.
type fakeIssuer struct {
	*httptest.Server

	challenge string
	grants    []string
	answered  func() // before a token is answered, unless nil
	failures  int    // how many requests for a token get no answer
}

func newFakeIssuer(t *testing.T) *fakeIssuer {
	t.Helper()
	f := new(fakeIssuer)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[2]s/authorize","token_endpoint":"%[2]s/token","device_authorization_endpoint":"%[2]s/device"}`, f.URL, f.URL)
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"device_code":"d1","user_code":"ABCD-EFGH","verification_uri":"%s/activate","expires_in":600,"interval":1}`, f.URL)
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		f.challenge = r.FormValue("code_challenge")
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?code=c1&state="+url.QueryEscape(r.FormValue("state")), http.StatusFound)
	})
	mux.HandleFunc("POST /token", f.token)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeIssuer) token(w http.ResponseWriter, r *http.Request) {
	if f.failures > 0 {
		f.failures--
		panic(http.ErrAbortHandler)
	}
	grant, name, life := r.FormValue("grant_type"), "first", 1
	f.grants = append(f.grants, grant)
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case grant == "refresh_token" && r.FormValue("refresh_token") == "r1":
		name, life = "second", 3600
	case grant == "authorization_code" && r.FormValue("code") == "c1" && base64.RawURLEncoding.EncodeToString(sum[:]) == f.challenge:
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && r.FormValue("device_code") == "d1":
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	if f.answered != nil {
		f.answered()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","refresh_token":"r1","expires_in":%d}`, name, life)
}

// visitor is standard error of a login, whose reader opens the address that it names.
type visitor struct {
	t *testing.T
	bytes.Buffer
}

func (v *visitor) Write(p []byte) (int, error) {
	if m := regexp.MustCompile(`Open (\S+/authorize\S+)`).FindSubmatch(p); m != nil {
		req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, string(m[1]), http.NoBody)
		if err != nil {
			return 0, err
		}
		res, err := new(http.Client).Do(req)
		if err != nil {
			v.t.Error(err)
			return 0, err
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	return v.Buffer.Write(p)
}

// A login stores a token that only its owner can read. Later commands send it, and refresh it once it has expired.
func TestLogin(t *testing.T) {
	for name, flags := range map[string][]string{"device_code": nil, "authorization_code": {"--browser"}} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", home)
			t.Setenv("TOLLGATE_KEY", "")
			issuer, said := newFakeIssuer(t), &visitor{t: t}
			args := append([]string{"login", issuer.URL, "--client-id", "cli"}, flags...)
			if code := run(t.Context(), args, io.Discard, said); code != 0 {
				t.Fatalf("exit %d: %s", code, said)
			}
			if flags == nil && !strings.Contains(said.String(), "/activate and enter the code ABCD-EFGH") {
				t.Errorf("said %s", said)
			}
			info, err := os.Stat(filepath.Join(home, "tollgate", "login.json"))
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("the token's file: %v, %v", info, err)
			}
			var sent []string
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.Header.Get("Authorization"))
				_ = json.NewEncoder(w).Encode(map[string]string{"org": "acme"})
			}))
			t.Cleanup(gateway.Close)
			for range 2 {
				if code, _, stderr := tell(t, "whoami", "--gateway", gateway.URL); code != 0 {
					t.Fatalf("exit %d: %s", code, stderr)
				}
			}
			if got := strings.Join(sent, ", "); got != "Bearer second, Bearer second" {
				t.Errorf("sent %s", got)
			}
			if len(issuer.grants) != 2 || !strings.HasSuffix(issuer.grants[0], name) || issuer.grants[1] != "refresh_token" {
				t.Errorf("grants %v", issuer.grants)
			}
		})
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for line, want := range map[string]string{
		"login http://id.example.com --client-id cli": "2 tollgate: issuer http://id.example.com/.well-known/openid-configuration: must use https",
		"login https://id.example.com":                `2 tollgate: required flag(s) "client-id" not set`,
		"whoami":                                      "1 tollgate: key required: set TOLLGATE_KEY, or run tollgate login",
	} {
		code, _, stderr := tell(t, strings.Fields(line)...)
		if got := fmt.Sprint(code, " ", stderr); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// What a login sends travels by https, or on loopback.
func TestLoginIsConfidential(t *testing.T) {
	for address, want := range map[string]bool{
		"https://id.example.com": true, "http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true,
		"http://id.example.com": false, "http://localhost.example.com": false, "ftp://localhost": false, "id.example.com": false, "": false, ":": false,
	} {
		if got := isConfidential(address); got != want {
			t.Errorf("isConfidential(%q) = %t", address, got)
		}
	}
}

// What an issuer's document says wrong is a failure, not a wrong command line.
func TestLoginAtWrongIssuers(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for document, want := range map[string]string{
		`"authorization_endpoint":"https://id.example.com/a","token_endpoint":"http://id.example.com/t"`: `contains the endpoint "http://id.example.com/t", which must use https`,
		"": "redirect must use https",
		`"authorization_endpoint":"https://id.example.com/a"`: "does not contain token_endpoint",
		`"token_endpoint":"https://id.example.com/t"`:         "does not contain authorization_endpoint",
	} {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if document == "" {
				http.Redirect(w, r, "http://id.example.com/", http.StatusFound)
				return
			}
			_, _ = fmt.Fprintf(w, `{"issuer":%q,%s}`, server.URL, document)
		}))
		t.Cleanup(server.Close)
		if code, _, stderr := tell(t, "login", server.URL, "--client-id", "cli"); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", document, code, stderr, want)
		}
	}
}

// The code flow needs the endpoint that the device flow does without.
func TestLoginByBrowserNeedsItsEndpoint(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%[1]q,"token_endpoint":"%[2]s/t","device_authorization_endpoint":"%[2]s/d"}`, server.URL, server.URL)
	}))
	t.Cleanup(server.Close)
	if _, err := discover(t.Context(), server.URL, false); err != nil {
		t.Error(err)
	}
	if _, err := discover(t.Context(), server.URL, true); err == nil || !strings.HasSuffix(err.Error(), "does not contain authorization_endpoint") {
		t.Errorf("with --browser: %v", err)
	}
}

// A connection that fails while a person enters the code does not end the login.
func TestLoginOutlastsFailures(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	issuer := newFakeIssuer(t)
	issuer.failures = 1
	code, _, stderr := tell(t, "login", issuer.URL, "--client-id", "cli")
	if code != 0 || !strings.Contains(stderr, "EOF: retrying in 2 seconds\n") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A connection that stays open does not keep a login waiting.
func TestStopDoesNotWait(t *testing.T) {
	held, began := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(began)
		<-held
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(held) })
	ended := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, server.URL, http.NoBody)
		res, err := new(http.Client).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		ended <- err
	}()
	<-began
	stop(t.Context(), server.Config)
	if err := <-ended; err == nil {
		t.Error("the request was answered")
	}
}

// expiredLogin is a login at an issuer whose token has expired.
func expiredLogin(issuer, refresh string) string {
	return fmt.Sprintf(`{"issuer":"%[1]s","clientId":"cli","tokenUrl":"%[1]s/token","token":{"access_token":"first","refresh_token":%[2]q,"expiry":"2020-01-01T00:00:00Z"}}`, issuer, refresh)
}

// Commands that find the same expired token refresh it once.
func TestRefreshIsSerialised(t *testing.T) {
	issuer := newFakeIssuer(t)
	storeLogin(t, expiredLogin(issuer.URL, "r1"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if token, err := storedToken(t.Context(), io.Discard); token != "second" || err != nil {
				t.Errorf("token %q, %v", token, err)
			}
		})
	}
	all.Wait()
	if len(issuer.grants) != 1 {
		t.Errorf("grants %v", issuer.grants)
	}
}

// Only an issuer's refusal means that a login has expired.
func TestRefreshThatFails(t *testing.T) {
	issuer, gone := newFakeIssuer(t), httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for login, want := range map[string]string{
		expiredLogin(issuer.URL, "r0"): "login expired, run tollgate login ",
		expiredLogin(issuer.URL, ""):   "login expired, run tollgate login ",
		expiredLogin(gone.URL, "r1"):   "failed to refresh the login at " + gone.URL + ": ",
	} {
		storeLogin(t, login)
		if _, err := storedToken(t.Context(), io.Discard); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", login, err, want)
		}
	}
}

// A token that cannot be stored is used.
func TestRefreshThatIsNotStored(t *testing.T) {
	issuer := newFakeIssuer(t)
	storeLogin(t, expiredLogin(issuer.URL, "r1"))
	file, err := loginFile()
	if err != nil {
		t.Fatal(err)
	}
	issuer.answered = func() { // the directory is gone, and a file has its place
		if err := errors.Join(os.RemoveAll(filepath.Dir(file)), os.WriteFile(filepath.Dir(file), nil, 0o600)); err != nil {
			t.Error(err)
		}
	}
	var notes strings.Builder
	token, err := storedToken(t.Context(), &notes)
	if token != "second" || err != nil || !strings.HasPrefix(notes.String(), "Cannot store the refreshed login: ") {
		t.Errorf("token %q, %v, %s", token, err, notes.String())
	}
}
