package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/tollgate-dev/tollgate/config/files"
)

// login is a stored login: a token, and the data required to refresh the token.
type login struct {
	Issuer   string       `json:"issuer"`
	ClientID string       `json:"clientId"`
	TokenURL string       `json:"tokenUrl"`
	Token    oauth2.Token `json:"token"`
}

// loginTime limits how long a login waits for the user.
const loginTime = 10 * time.Minute

// issuerTime limits one request to an issuer.
const issuerTime = 30 * time.Second

type loginFlags struct {
	clientID string
	scopes   []string
	browser  bool
}

func newLogin() *cobra.Command {
	f := new(loginFlags)
	cmd := &cobra.Command{
		Use: "login ISSUER", Short: "Log in through an OpenID Connect issuer and use a token instead of a key", Args: named([]string{"ISSUER"}),
		Example: "  tollgate login https://id.example.com/realms/main --client-id tollgate-cli",
		Long: `Logs in at an OpenID Connect issuer that the gateway accepts (issuers in its
configuration), and stores the access token in tollgate/login.json of the user's
configuration directory, readable only by the user. "tollgate my", whoami and billing
send the token if the variable of --key-env is not set, and refresh it when it
expires.

If the issuer has a device authorization endpoint, the device flow is used (RFC
8628): open the printed address in any browser. With --browser, or at other issuers,
a browser on this machine must open the address (RFC 8252, with PKCE).`,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), loginTime)
			defer cancel()
			return f.run(ctx, args[0], cmd.ErrOrStderr())
		}),
	}
	cmd.Flags().StringVar(&f.clientID, "client-id", "", "client ID of this program, a public client at the issuer")
	cmd.Flags().StringSliceVar(&f.scopes, "scope", []string{"openid", "offline_access"}, "scopes to request; can be repeated")
	cmd.Flags().BoolVar(&f.browser, "browser", false, "log in with a browser on this machine, without the device flow")
	must(cmd.MarkFlagRequired("client-id"))
	return cmd
}

func (f *loginFlags) run(ctx context.Context, issuer string, notes io.Writer) error {
	config, err := discover(ctx, issuer, f.browser)
	if err != nil {
		return err
	}
	config.ClientID, config.Scopes = f.clientID, f.scopes
	ask := byDevice
	if config.Endpoint.DeviceAuthURL == "" {
		ask = byBrowser
	}
	token, err := ask(context.WithValue(ctx, oauth2.HTTPClient, issuerClient), config, notes)
	if err != nil {
		return fmt.Errorf("login at %s: %w", issuer, err)
	}
	file, err := loginFile()
	if err != nil {
		return err
	}
	if err := (&login{issuer, f.clientID, config.Endpoint.TokenURL, *token}).save(file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(notes, "Logged in. The token is in %s.\n", file)
	return err
}

// discover reads the endpoints of an issuer (OpenID Connect Discovery 1.0, section 4). If browser is true, the issuer must support the
// authorization code flow; otherwise the code flow or the device flow.
func discover(ctx context.Context, issuer string, browser bool) (*oauth2.Config, error) {
	address := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	if !isConfidential(address) {
		return nil, usagef("issuer %s: must use https", address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := issuerClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: specify the issuer exactly as in the iss claim of its tokens", address, res.Status)
	}
	var found struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
		Device    string `json:"device_authorization_endpoint"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&found); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if found.Issuer != issuer {
		return nil, fmt.Errorf("%s describes the issuer %q, not %q", address, found.Issuer, issuer)
	}
	if browser {
		found.Device = ""
	}
	switch {
	case found.Token == "":
		return nil, fmt.Errorf("%s does not contain token_endpoint", address)
	case found.Authorize == "" && found.Device == "":
		return nil, fmt.Errorf("%s does not contain authorization_endpoint", address)
	}
	for _, endpoint := range []string{found.Authorize, found.Token, found.Device} {
		if endpoint != "" && !isConfidential(endpoint) {
			return nil, fmt.Errorf("%s contains the endpoint %q, which must use https", address, endpoint)
		}
	}
	return &oauth2.Config{Endpoint: oauth2.Endpoint{
		AuthURL: found.Authorize, TokenURL: found.Token, DeviceAuthURL: found.Device,
		AuthStyle: oauth2.AuthStyleInParams,
	}}, nil
}

// issuerClient sends requests to issuers. It does not follow redirects to addresses that are not confidential.
var issuerClient = &http.Client{Timeout: issuerTime, CheckRedirect: func(req *http.Request, via []*http.Request) error {
	switch {
	case !isConfidential(req.URL.String()):
		return errors.New("redirect must use https")
	case len(via) >= 10:
		return errors.New("too many redirects")
	}
	return nil
}}

// isConfidential reports whether an address uses encryption or is on loopback.
func isConfidential(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")
}

// byDevice obtains a token with the device flow. If the issuer cannot be reached, byDevice retries until the code expires.
func byDevice(ctx context.Context, config *oauth2.Config, notes io.Writer) (*oauth2.Token, error) {
	device, err := config.DeviceAuth(ctx)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(notes, "Open %s and enter the code %s\n", printable(device.VerificationURI), printable(device.UserCode))
	for {
		token, err := config.DeviceAccessToken(ctx, device)
		if _, failed := errors.AsType[*url.Error](err); !failed {
			return token, err
		}
		device.Interval = 2 * cmp.Or(device.Interval, 5) // RFC 8628, section 3.5
		_, _ = fmt.Fprintf(notes, "%v: retrying in %d seconds\n", err, device.Interval)
	}
}

// byBrowser obtains a token with the code flow. The browser is redirected to a listener on loopback (RFC 8252, section 7.3).
func byBrowser(ctx context.Context, config *oauth2.Config, notes io.Writer) (*oauth2.Token, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	state, verifier, codes := rand.Text(), oauth2.GenerateVerifier(), make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: issuerTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/callback" || r.FormValue("state") != state {
			http.Error(w, "Unknown login. Start the login again in the terminal.", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "You can close this page and return to the terminal.\n")
		select {
		case codes <- r.Form:
		default: // the page was reloaded
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer stop(context.WithoutCancel(ctx), server)
	_, _ = fmt.Fprintf(notes, "Open %s\n", config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case answer := <-codes:
		if refusal := answer.Get("error"); refusal != "" {
			return nil, errors.New(printable(strings.TrimSpace(refusal + " " + answer.Get("error_description"))))
		}
		return config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	}
}

// stop waits briefly until a server has sent its responses, and then closes the server.
func stop(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, margin/2)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}

// loginFile returns the path of the file with the login.
func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "tollgate", "login.json"), err
}

// save replaces the file. Only the owner of the file can read it.
func (l *login) save(file string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return files.UnrestrictedTarget(file).Replace(text)
}

// readLogin reads the file. It returns an empty login if the file does not exist.
func readLogin(file string) (*login, error) {
	l := new(login)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err := errors.Join(err, json.Unmarshal(text, l)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return l, nil
}

// storedToken returns the access token of the stored login, and refreshes an expired token first. It returns "" without a login.
func storedToken(ctx context.Context, notes io.Writer) (string, error) {
	l := new(login) // stays empty if there is no configuration directory
	if file, err := loginFile(); err == nil {
		if l, err = readLogin(file); err == nil && l.Issuer != "" && !l.Token.Valid() {
			l, err = refreshed(ctx, file, notes)
		}
		if err != nil {
			return "", err
		}
	}
	return l.Token.AccessToken, nil
}

// refreshed returns the stored login with a valid token. Only one process refreshes the token at a time, because an issuer may accept a
// refresh token only once. If the directory is not writable, refreshed returns the new token without storing it.
func refreshed(ctx context.Context, file string, notes io.Writer) (*login, error) {
	unlock, err := lock(filepath.Join(filepath.Dir(file), "login.lock"))
	if err != nil {
		_, _ = fmt.Fprintf(notes, "Refreshing the login without a lock: %v\n", err)
	}
	defer unlock()
	l, err := readLogin(file)
	if err != nil || l.Issuer == "" || l.Token.Valid() {
		return l, err
	}
	if err := l.refresh(ctx); err != nil {
		return nil, err
	}
	if err := l.save(file); err != nil {
		_, _ = fmt.Fprintf(notes, "Cannot store the refreshed login: %v\n", err)
	}
	return l, nil
}

// lock waits for the lock of a file, and creates the file if it does not exist.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}, err
	}
	return func() { _ = f.Close() }, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}

// refresh requests a new token from the issuer.
func (l *login) refresh(ctx context.Context) error {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, issuerClient)
	config := oauth2.Config{ClientID: l.ClientID, Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}
	token, err := config.TokenSource(ctx, &l.Token).Token()
	refused, isRefused := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case err == nil:
		l.Token = *token
		return nil
	case l.Token.RefreshToken == "", isRefused && refused.ErrorCode == "invalid_grant":
		return fmt.Errorf("login expired, run tollgate login %s --client-id %s again: %w", l.Issuer, l.ClientID, err)
	}
	return fmt.Errorf("failed to refresh the login at %s: %w", l.Issuer, err)
}
