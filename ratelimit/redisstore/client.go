package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/config/files"
)

// Options parses one or more Redis URLs into options that are suitable for counting: go-redis does not retry commands, obeys deadlines, and
// fails early if it cannot dial. [Open] creates a client with these options.
//
// The scheme selects the kind of the addresses. A trailing s in the first part enables TLS:
//
//	redis://user:password@host:6379/0             one node (rediss:// with TLS)
//	redis+cluster://user:password@a:6379,b:6379   seeds of a cluster (rediss+cluster://)
//	redis+sentinel://user:password@a:26379,b:26379/name   a sentinel group and the
//	                                              name of its master (rediss+sentinel://)
//	unix://user:password@/run/redis.sock?db=0     a socket on this machine
//
// User and password belong to an ACL user of the data nodes. The query parameters are:
//
//	pool_size                             maximum number of connections to one server
//	db                                    number of the database, for unix://
//	sentinel_username, sentinel_password  credentials for the Sentinels
//	tls_ca                                file with the trusted authorities (PEM),
//	                                      instead of the system's
//	tls_cert, tls_key                     files with a client certificate (PEM)
//	tls_server_name                       name in the server's certificate, if it
//	                                      differs from the host
//
// Options reads the files immediately, and the client reads them again for each connection. The errors of Options never contain the URL,
// which includes the password.
func Options(rawURL string) (*redis.UniversalOptions, error) {
	head, hosts, tail := splitHosts(rawURL)
	u, err := url.Parse(head + "hosts" + tail)
	if err != nil {
		// The text of a url.Error contains the URL, which includes the password.
		return nil, errors.New("cannot be parsed: must be a URL such as redis://USER:PASSWORD@HOST:6379/0, with %40 for an @ in the password")
	}
	o := &redis.UniversalOptions{
		MaxRetries: -1,
		// Both are useless here, and newer servers require an additional permission for each.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		ContextTimeoutEnabled: true,
		DialTimeout:           2 * time.Second,
		DialerRetries:         1,
		ReadTimeout:           time.Second,
		WriteTimeout:          time.Second,
	}
	if err := addresses(o, u, hosts); err != nil {
		return nil, err
	}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if err := parameters(o, u.Query()); err != nil {
		return nil, err
	}
	return o, nil
}

// parameters applies the query parameters of a URL to o.
func parameters(o *redis.UniversalOptions, query url.Values) error {
	var files tlsFiles
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query[name][len(query[name])-1]
		if strings.HasPrefix(name, "tls_") && o.TLSConfig == nil {
			return fmt.Errorf("%s requires TLS: use a scheme that begins with rediss", name)
		}
		switch name {
		case "pool_size":
			var err error
			if o.PoolSize, err = strconv.Atoi(value); err != nil || o.PoolSize < 1 {
				return fmt.Errorf("pool_size must be a positive number, got %q", value)
			}
		case "db":
			var err error
			if o.DB, err = strconv.Atoi(value); err != nil || o.DB < 0 || !strings.HasPrefix(o.Addrs[0], "/") {
				return fmt.Errorf("db must be a number and requires unix:// (other URLs name the database in their path), got %q", value)
			}
		case "sentinel_username":
			o.SentinelUsername = value
		case "sentinel_password":
			o.SentinelPassword = value
		case "tls_ca":
			files.ca = value
		case "tls_cert":
			files.cert = value
		case "tls_key":
			files.key = value
		case "tls_server_name":
			o.TLSConfig.ServerName = value
		default:
			return fmt.Errorf("unknown parameter %q", name)
		}
	}
	if files == (tlsFiles{}) {
		return nil
	}
	if err := files.load(o.TLSConfig); err != nil {
		return err
	}
	o.Dialer = files.dialer(o)
	return nil
}

// tlsFiles are the files named by a URL.
type tlsFiles struct{ ca, cert, key string }

// dialer returns a dialer that reads the files for each connection, because certificates are renewed. If a file cannot be used, for example
// while it is replaced, the connection uses the last valid files.
func (f tlsFiles) dialer(o *redis.UniversalOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	var valid atomic.Pointer[tls.Config]
	valid.Store(o.TLSConfig)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c := o.TLSConfig.Clone()
		if f.load(c) == nil {
			valid.Store(c)
		} else {
			c = valid.Load()
		}
		return redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: c})(ctx, network, addr)
	}
}

// load reads the files into c.
func (f tlsFiles) load(c *tls.Config) error {
	if (f.cert == "") != (f.key == "") {
		return errors.New("tls_cert and tls_key must be set together")
	}
	if f.ca != "" {
		text, err := files.Read(f.ca, files.MaxSecret)
		if err != nil {
			return fmt.Errorf("tls_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("tls_ca: %s contains no certificate", f.ca)
		}
	}
	if f.cert != "" {
		cert, certErr := files.Read(f.cert, files.MaxSecret)
		key, err := files.Read(f.key, files.MaxSecret)
		if err = errors.Join(certErr, err); err != nil {
			return fmt.Errorf("tls_cert: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("tls_cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// splitHosts cuts the addresses out of a URL, because package url accepts only one.
func splitHosts(rawURL string) (head, hosts, tail string) {
	start := strings.Index(rawURL, "://")
	if start < 0 {
		return rawURL, "", ""
	}
	start += len("://")
	end := len(rawURL)
	if i := strings.IndexAny(rawURL[start:], "/?#"); i >= 0 {
		end = start + i
	}
	if i := strings.LastIndexByte(rawURL[start:end], '@'); i >= 0 {
		start += i + 1
	}
	return rawURL[:start], rawURL[start:end], rawURL[end:]
}

// addresses applies the scheme and the path of u, and the hosts in list.
func addresses(o *redis.UniversalOptions, u *url.URL, list string) error {
	path := u.Path
	if path != "" {
		path = path[1:]
	}
	hosts := strings.Split(list, ",")
	switch u.Scheme {
	case "unix":
		if list != "" || path == "" {
			return errors.New("unix:// must be followed by the path of a socket, without a host, as in unix:///run/redis.sock")
		}
		o.Addrs = []string{u.Path}
		return nil
	case "redis", "rediss":
		if path != "" {
			db, err := strconv.Atoi(path)
			if err != nil || db < 0 {
				return fmt.Errorf("database must be a number, got %q", path)
			}
			o.DB = db
		}
	case "redis+cluster", "rediss+cluster":
		o.IsClusterMode = true
		if path != "" {
			return fmt.Errorf("a cluster does not support databases, got %q", path)
		}
	case "redis+sentinel", "rediss+sentinel":
		if path == "" {
			return errors.New("the path must name the Sentinel master")
		}
		o.MasterName = path
	default:
		return fmt.Errorf("unknown scheme %q: must be redis, rediss, redis+cluster, rediss+cluster, redis+sentinel, rediss+sentinel or unix",
			u.Scheme)
	}
	if len(hosts) > 1 && o.MasterName == "" && !o.IsClusterMode {
		return errors.New("multiple addresses require the scheme redis+cluster or redis+sentinel")
	}
	port := "6379"
	if o.MasterName != "" {
		port = "26379"
	}
	for _, host := range hosts {
		if host == "" {
			return errors.New("address is empty")
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if err := checkAddress(host); err != nil {
			return err
		}
		o.Addrs = append(o.Addrs, host)
	}
	if strings.HasPrefix(u.Scheme, "rediss") {
		o.TLSConfig = encryption.Config()
	}
	return nil
}

// checkAddress returns an error if address is not a host and a port.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address: must be HOST:PORT", address)
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"<>\^{|}@`, r) }) {
		return fmt.Errorf("%q is not a host name or address", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is not a port: must be from 1 to 65535", port)
	}
	return nil
}

// connectTime is added to a deadline to allow for making a connection: dialing, the handshake, and identifying the server.
const connectTime = 4 * time.Second

// extendDeadline returns ctx with its deadline extended by connectTime. Without the extension, a request that has to connect first could be
// canceled while connecting, and so could the next one. Once connected, the client's read timeout applies.
func extendDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	later, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(connectTime))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return later, func() { stop(); cancel() }
}

// Client contains the methods of [redis.UniversalClient] that the stores of a gateway need. *redis.Client and *redis.ClusterClient
// implement Client. If packages used redis.UniversalClient, the compiler would process 1,500 more methods in each package
// (docs/decisions/022).
type Client interface {
	redis.Cmdable
	AddHook(hook redis.Hook)
	Process(ctx context.Context, cmd redis.Cmder) error
	Close() error
}

// Open returns a client for the servers of a URL; see [Options] for the syntax. timeout is the maximum wait for a reply; 0 means 1 second.
// The client connects on first use. The caller must close it.
func Open(rawURL string, timeout time.Duration) (Client, error) {
	o, err := Options(rawURL)
	if err != nil {
		return nil, err
	}
	if timeout > 0 {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = max(o.DialTimeout, timeout), timeout, timeout
	}
	if o.IsClusterMode {
		return newCluster(o), nil
	}
	return redis.NewUniversalClient(o), nil
}

// LocalAddr returns the local IP address of connections to the servers of a URL. In a container, this is the address of the container.
// LocalAddr sends no packets.
func LocalAddr(ctx context.Context, rawURL string) (netip.Addr, error) {
	o, err := Options(rawURL)
	if err != nil {
		return netip.Addr{}, err
	}
	if strings.HasPrefix(o.Addrs[0], "/") {
		return netip.Addr{}, errors.New("a Unix socket does not have a network address")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", o.Addrs[0])
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = conn.Close() }()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr().Unmap(), err
}

// obeysDeadlines reports whether client obeys the deadlines of contexts. It assumes so for clients of unknown types.
func obeysDeadlines(client Client) bool {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return true
}
