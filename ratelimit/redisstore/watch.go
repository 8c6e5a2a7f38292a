package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// serverWatch detects that the server of a client has restarted or was replaced, and may therefore have less data. Both cause a new
// connection or, in a cluster whose replicas have connections before they are promoted, a changed list of masters. After one of these
// signs, it identifies the server as soon as the current request has finished. If the server has changed, the outcome of the request is
// invalid: it may have been charged, but to counts that cannot be trusted.
//
// After a failover by Sentinel the old master may still run, and a connection made at that moment may lead to it. It would then be
// mistaken for the server that the other gateways use. Therefore with Sentinel, where an address identifies a server, a connection to
// another address also counts as a change.
//
// A changed server admits nothing until all gateways have restored their counts. Each gateway adds its name to a set named after the
// server, and continues once the set contains all gateways that were alive shortly before and all that have announced themselves to the
// new server. A gateway that does not return is waited for until the end of the pause.
//
// Losses of data by a server that was not replaced are detected by writeTracker.
type serverWatch struct {
	client  Client
	config  Config // with defaults applied
	lineage *writeTracker
	// sentinel is set if the client asks Sentinels for the master. addr is the address of its latest connection.
	sentinel bool
	addr     atomic.Pointer[string]
	// signs counts the reasons to identify the server. verified is that count at the latest check.
	signs, verified atomic.Int64
	// masters are the addresses of a cluster's masters, as last listed.
	masters atomic.Pointer[string]
	// named contains the addresses that replies have named as masters of a cluster since the latest check. A node may still list the old
	// masters after a promotion.
	named sync.Map
	// epoch changes when the server is replaced.
	epoch atomic.Int64

	mu sync.Mutex
	// known contains the identities of servers by address, and present the addresses of the servers found at the latest check.
	known   map[string]string
	present []string
	// loss is the epoch of the latest loss of data by the known servers, or 0.
	loss int64
	// peers are the known gateways with the times of their latest heartbeats.
	peers map[string]time.Time
	// since is the time when the latest change was detected, and until the end of the pause after it, in nanoseconds after base. The
	// wall clock may be set in between.
	base         time.Time
	since, until atomic.Int64
	// unheard is set if the change was detected by a command of another user of the server.
	unheard atomic.Bool
	// gatewayLost is the latest epoch whose pause ended although a gateway was missing.
	gatewayLost atomic.Int64
}

func newWatch(client Client, config Config) *serverWatch {
	config.Recovery = cmp.Or(config.Recovery, ratelimit.DefaultRecovery)
	if config.Now == nil {
		config.Now = time.Now
	}
	w := &serverWatch{client: client, config: config, lineage: newWriteTracker(), known: make(map[string]string), peers: make(map[string]time.Time)}
	w.base = config.Now()
	w.signs.Store(1) // the client may have connections already
	switch c := client.(type) {
	case *redis.ClusterClient:
		c.OnNewNode(func(node *redis.Client) { node.AddHook(w) })
	case *redis.Client:
		w.sentinel = c.Options().Addr == failoverAddr
		c.AddHook(w)
	default:
		c.AddHook(w)
	}
	return w
}

// failoverAddr is the address that go-redis sets for clients that use Sentinels.
const failoverAddr = "FailoverClient"

// DialHook implements [redis.Hook].
func (w *serverWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return conn, err
		}
		if w.sentinel {
			to := conn.RemoteAddr().String()
			if was := w.addr.Swap(&to); was != nil && *was != to {
				w.changed()
			}
		}
		w.signs.Add(1)
		return conn, nil
	}
}

// changed begins a pause and invalidates the requests in progress.
func (w *serverWatch) changed() {
	if w.config.Recovery < 0 {
		return
	}
	now := w.elapsed()
	w.since.Store(int64(now))
	w.until.Store(int64(now + w.config.Recovery))
	w.epoch.Add(1)
}

// lost begins a pause after a loss of data that began a new epoch.
func (w *serverWatch) lost(epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch > w.loss {
		w.loss = epoch
		w.changed()
	}
}

// ProcessHook implements [redis.Hook].
func (w *serverWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if list, ok := cmd.(*redis.ClusterSlotsCmd); ok && err == nil {
			w.listed(list.Val())
		}
		w.answered(err)
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (w *serverWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		w.answered(err)
		return err
	}
}

// answered handles a node's reply that another node is the master of a slot.
func (w *serverWatch) answered(err error) {
	if addr, moved := redis.IsMovedError(err); moved {
		w.hasNamed(addr)
		w.signs.Add(1)
	}
}

// listed handles a list of the masters of a cluster.
func (w *serverWatch) listed(slots []redis.ClusterSlot) {
	addrs := make([]string, 0, len(slots))
	for _, s := range slots {
		if len(s.Nodes) > 0 {
			addrs = append(addrs, s.Nodes[0].Addr)
			w.hasNamed(s.Nodes[0].Addr)
		}
	}
	slices.Sort(addrs)
	now := strings.Join(slices.Compact(addrs), ",")
	if was := w.masters.Swap(&now); was == nil || *was != now {
		w.signs.Add(1)
	}
}

// hasNamed records that a reply has named a master. An address without a host, which each node uses for itself, identifies none.
func (w *serverWatch) hasNamed(addr string) {
	if !strings.HasPrefix(addr, ":") {
		w.named.Store(addr, nil)
	}
}

// pausing reports whether the pause is still in effect.
func (w *serverWatch) pausing() bool { return w.elapsed() < time.Duration(w.until.Load()) }

// elapsed returns the time since base.
func (w *serverWatch) elapsed() time.Duration { return w.config.Now().Sub(w.base) }

// roll returns the name of the set of gateways that have restored their counts to the current servers since the latest loss of data.
func (w *serverWatch) roll() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.present)+1)
	for _, addr := range w.present {
		ids = append(ids, w.known[addr])
	}
	slices.Sort(ids)
	if w.loss > 0 {
		ids = append(ids, strconv.FormatInt(w.loss, 10))
	}
	return "restored:" + strings.Join(ids, ",")
}

// heard records the live gateways, and during a pause the gateways that have restored their counts. The pause ends when no gateway is
// missing, but not before every gateway has had time for a heartbeat. Requests from before the change remain invalid. heard returns true if
// the pause is about to end although a gateway is missing.
func (w *serverWatch) heard(epoch int64, alive, restored []string, within time.Duration) (gatewayLost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch.Load() != epoch {
		return false // belongs to another server
	}
	now := w.config.Now()
	for _, p := range alive {
		w.peers[p] = now
	}
	if !w.pausing() {
		if w.until.Swap(0) != 0 && w.missing(restored) {
			w.gatewayLost.Store(epoch)
		}
		maps.DeleteFunc(w.peers, func(_ string, last time.Time) bool { return now.Sub(last) > within })
		return false
	}
	if w.missing(restored) {
		return time.Duration(w.until.Load())-w.elapsed() <= ratelimit.LossNotice
	}
	if w.elapsed()-time.Duration(w.since.Load()) >= MinRecovery {
		w.until.Store(0)
	}
	return false
}

// missing reports whether a known gateway has not restored its counts. The caller holds mu.
func (w *serverWatch) missing(restored []string) bool {
	for p := range w.peers {
		if !slices.Contains(restored, p) {
			return true
		}
	}
	return false
}

// alive returns the names of the gateways with a recent heartbeat, sorted.
func (w *serverWatch) alive() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.peers))
}

// check returns an error if the outcome of a request that began in epoch is invalid.
func (w *serverWatch) check(ctx context.Context, epoch int64) error {
	if w.config.Recovery < 0 {
		return nil
	}
	if w.signs.Load() != w.verified.Load() {
		if err := w.verify(ctx); err != nil {
			return err
		}
	}
	if w.epoch.Load() != epoch {
		return ratelimit.ErrRestarted
	}
	return nil
}

// verify identifies the servers.
func (w *serverWatch) verify(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	signs := w.signs.Load()
	if signs == w.verified.Load() {
		return nil // another exchange has just done so
	}
	found, err := w.identify(ctx)
	if err != nil {
		return fmt.Errorf("identify server: %w", err)
	}
	w.present = slices.Collect(maps.Keys(found))
	w.named.Range(func(addr, _ any) bool {
		if _, identified := found[addr.(string)]; !identified {
			found[addr.(string)] = w.known[addr.(string)]
		}
		w.named.Delete(addr)
		return true
	})
	for addr, id := range found {
		if was, known := w.known[addr]; len(w.known) > 0 && (!known || was != id) {
			w.changed()
			w.loss = 0
			w.lineage.forget()
			break
		}
	}
	maps.Copy(w.known, found)
	w.verified.Store(signs)
	return nil
}

// identify returns the run ID of each master. A server that does not report it (the embedded one) is assumed to live as long as this
// process. A cluster node that cannot be reached is assumed to be unchanged, because reaching it again requires a new connection.
func (w *serverWatch) identify(ctx context.Context) (map[string]string, error) {
	found := make(map[string]string)
	cluster, ok := w.client.(*redis.ClusterClient)
	if !ok {
		id, err := identity(ctx, w.client)
		found[""] = id
		return found, err
	}
	var mu sync.Mutex
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		addr := node.Options().Addr
		id, err := identity(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			found[addr] = id
		} else if was, ok := w.known[addr]; ok {
			found[addr] = was
		}
		return nil
	})
	return found, err
}

// identity returns the run ID of a server and its replication ID, which changes when a replica is promoted. It returns "" if the server
// does not report them.
func identity(ctx context.Context, c redis.Cmdable) (string, error) {
	var server, replication *redis.StringCmd
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		server, replication = p.Info(ctx, "server"), p.Info(ctx, "replication")
		return nil
	})
	if withholdsInfo(err) {
		return "", nil
	}
	return field(server.Val(), "run_id") + field(replication.Val(), "master_replid"), err
}
