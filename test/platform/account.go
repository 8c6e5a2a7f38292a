package platform

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// account is one customer and everything it owns. Records that are kept over a
// restart have exported fields, here and in every resource.
type account struct {
	ID         string
	fullKey    string // a key with full access, for the calls of seeds; may be empty
	exempt     bool
	clouds     []string
	deniedGPUs []string
	windows    [3]window
	policy     string

	touch       func() // notes a change apart from the tables for the data file
	funds       funds
	sshKeys     []string
	pods        table[pod]
	volumes     table[volume]
	registries  table[registry]
	templates   table[template]
	delegations table[delegation]
	clusters    table[cluster]
	endpoints   table[endpoint]
	publicJobs  table[job]
	workerQuota int
	meters      table[meter]
	secrets     table[secret]
	sandboxes   table[sandbox]
	// maxIdle and maxLifetime clamp the clocks of sandboxes, in seconds.
	maxIdle, maxLifetime int64
}

// credential is what a key opens.
type credential struct {
	account *account
	access  Access
}

// openAccounts makes the accounts of the options and indexes their keys.
func (s *Server) openAccounts(list []Account) error {
	now := s.clock.Now()
	for _, o := range list {
		if o.ID == "" || s.accounts[o.ID] != nil {
			return fmt.Errorf("account %q: ids must be given and differ", o.ID)
		}
		a := newAccount(o, now)
		s.accounts[o.ID] = a
		keys := slices.Clone(o.Keys)
		if o.Key != "" {
			keys = append(keys, Key{Secret: o.Key})
		}
		for _, k := range keys {
			hash := sha256.Sum256([]byte(k.Secret))
			if _, taken := s.keys[hash]; taken || k.Secret == "" {
				return fmt.Errorf("account %q: keys must be given and differ", o.ID)
			}
			s.keys[hash] = credential{account: a, access: k.Access}
			if k.Access == ReadWrite && (a.fullKey == "" || k.Secret == o.Key) {
				a.fullKey = k.Secret
			}
		}
	}
	return nil
}

func newAccount(o Account, now time.Time) *account {
	balance := o.Balance
	switch {
	case balance == 0:
		balance = DefaultBalance
	case balance < 0:
		balance = 0
	}
	windows := newWindows(o.Quota)
	return &account{
		ID:          o.ID,
		touch:       func() {},
		exempt:      o.Exempt,
		clouds:      slices.Clone(o.Clouds),
		deniedGPUs:  slices.Clone(o.DeniedGPUs),
		windows:     windows,
		policy:      policyHeader(windows),
		funds:       funds{Balance: balance, SettledAt: now},
		sshKeys:     slices.Clone(o.SSHKeys),
		workerQuota: cmp.Or(o.WorkerQuota, defaultQuota),
		maxIdle:     min(cmp.Or(o.MaxSandboxIdle, maxSandboxIdle), maxSandboxIdle),
		maxLifetime: min(cmp.Or(o.MaxSandboxLifetime, maxSandboxLifetime), maxSandboxLifetime),
	}
}

// account finds what a key opens. The look-up is by hash: neither time nor
// memory depends on how much of a key was guessed.
func (s *Server) account(secret string) (*account, Access, bool) {
	c, known := s.keys[sha256.Sum256([]byte(secret))]
	return c.account, c.access, known
}

// mayUse reports whether the account may rent gpu (empty for CPU) on cloud.
func (a *account) mayUse(cloud, gpu string) error {
	if len(a.clouds) > 0 && !slices.Contains(a.clouds, cloud) {
		return refuse(403, "access denied: this account may not use the "+cloud+" cloud")
	}
	if gpu != "" && slices.Contains(a.deniedGPUs, gpu) {
		return refuse(403, "access denied: this account may not use "+gpu)
	}
	return nil
}

// SetBalance sets what an account has left, in USD.
func (s *Server) SetBalance(accountID string, usd float64) error {
	return s.alterAccount(accountID, func(a *account) {
		a.funds.Balance = usd
		a.touch()
		a.funds.settle(a.funds.SettledAt)
		for _, e := range a.endpoints.order {
			s.scheduleLocked(a, e, a.funds.SettledAt)
		}
	})
}

// alterAccount calls change with an account, which is brought up to now before.
func (s *Server) alterAccount(id string, change func(a *account)) error {
	s.mu.Lock()
	defer s.release()
	a := s.accounts[id]
	if a == nil {
		return fmt.Errorf("no account is called %q", id)
	}
	s.advanceLocked(a, s.clock.Now())
	change(a)
	return nil
}

// Balance returns what an account has left now and what it spends per hour,
// both in USD.
func (s *Server) Balance(accountID string) (left, perHour float64, err error) {
	err = s.alterAccount(accountID, func(a *account) { left, perHour = a.funds.Balance, a.funds.burn })
	return left, perHour, err
}

// SetQuota changes the request quota of an account and empties its windows.
func (s *Server) SetQuota(accountID string, q Quota) error {
	if q.Minute < 0 || q.Hour < 0 || q.Day < 0 {
		return errors.New("quota: must not be negative")
	}
	return s.alterAccount(accountID, func(a *account) {
		a.windows = newWindows(q)
		a.policy = policyHeader(a.windows)
	})
}

// sshKeysLocked answers the registered set.
func (x *exchange) sshKeysLocked() (reply, error) {
	return ok(object{"keys", x.acct.sshKeys}), nil
}

// updateSSHKeys replaces the set: what is not named is removed.
func (x *exchange) updateSSHKeys() (reply, error) {
	want, err := bodyOf[struct {
		Keys []string `body:"keys" need:"yes" form:"SSH key"`
	}](x)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	x.acct.sshKeys = want.Keys
	x.acct.touch()
	return x.sshKeysLocked()
}

// keyLine is an authorized_keys line, which reads "<type> <base64> [comment]".
var keyLine = regexp.MustCompile(`^(ssh|ecdsa|sk)-[^ \t\v\f\r\n]+ [^ \t\v\f\r\n]+([ \t][^\r\n]*)?$`)

// sshKey says what is wrong with an authorized_keys line.
func sshKey(line string) string {
	if keyLine.MatchString(line) {
		return ""
	}
	return "not of the form '<type> <base64> [comment]' with a type of ssh-…, ecdsa-… or sk-…"
}

// accountRoutes is every operation on the account itself.
func accountRoutes() []route {
	return []route{
		getRoute("/v2/account/ssh-keys", "getSshKeys", locked((*exchange).sshKeysLocked)),
		changeRoute(http.MethodPut, "/v2/account/ssh-keys", "updateSshKeys", (*exchange).updateSSHKeys),
	}
}
