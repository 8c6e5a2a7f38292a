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

// serverWatch notices that the server behind a client is no longer the one it was: it
// has restarted, or another one has taken its place, and may know less. Neither
// can happen without a new connection, or without another list of the masters of a
// cluster, whose replicas have connections before they are promoted. So only after a
// sign of one of these does it ask who answers. That is asked after the exchange that
// needed the connection, whose outcome then does not count: it may have been charged,
// but to counts that cannot be trusted.
//
// After a failover by Sentinel the old master may live on, and a connection that
// was being made at that moment may have gone there still. Whoever answers over
// that one would pass for the server all others talk to. So behind Sentinel, where
// an address stands for one server, a connection to another address is a change,
// too.
//
// A server that changed admits nothing before all gateways have restored their
// memory: each enters its name in a set that is named after the server, and goes
// on when all those are in it that were alive shortly before, and those that have
// announced themselves to the new server. One that does not come is waited for no
// longer than the pause.
//
// A loss of data by a server that stays the same is noticed by the lineage.
type serverWatch struct {
	client  Client
	config  Config // with its defaults
	lineage *writeTracker
	// sentinel is set if the client asks Sentinels where the master is; addr is
	// the address of the latest connection then.
	sentinel bool
	addr     atomic.Pointer[string]
	// signs counts the reasons to ask who answers, verified is the count at the latest check.
	signs, verified atomic.Int64
	// masters are the addresses of a cluster's masters, as last listed.
	masters atomic.Pointer[string]
	// epoch changes with the server.
	epoch atomic.Int64

	mu sync.Mutex
	// known has the identities of servers by their addresses, present the addresses of those that
	// were there at the latest check.
	known   map[string]string
	present []string
	// loss is the epoch of the latest loss of data by the servers known, 0 for none.
	loss int64
	// peers are the gateways heard of, and when last.
	peers map[string]time.Time
	// since is when the latest change was noticed, until when the pause after it
	// ends, in Unix nanoseconds.
	since, until atomic.Int64
	// unheard says that a change was noticed by an exchange that was none of the Store's.
	unheard atomic.Bool
	// deserted is the latest epoch whose pause ended without all gateways.
	deserted atomic.Int64
}

func newWatch(client Client, config Config) *serverWatch {
	config.Recovery = cmp.Or(config.Recovery, DefaultRecovery)
	if config.Now == nil {
		config.Now = time.Now
	}
	w := &serverWatch{client: client, config: config, lineage: newWriteTracker(), peers: make(map[string]time.Time)}
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

// failoverAddr is the address go-redis gives clients that ask Sentinels.
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

// changed begins a pause, and makes the exchanges under way not count.
func (w *serverWatch) changed() {
	if w.config.Recovery < 0 {
		return
	}
	now := w.config.Now()
	w.since.Store(now.UnixNano())
	w.until.Store(now.Add(w.config.Recovery).UnixNano())
	w.epoch.Add(1)
}

// lost begins a pause after a loss of data, with which an epoch began.
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

// answered notes a node's answer that another one is the master of a slot.
func (w *serverWatch) answered(err error) {
	if _, moved := redis.IsMovedError(err); moved {
		w.signs.Add(1)
	}
}

// listed notes the masters of a cluster.
func (w *serverWatch) listed(slots []redis.ClusterSlot) {
	addrs := make([]string, 0, len(slots))
	for _, s := range slots {
		if len(s.Nodes) > 0 {
			addrs = append(addrs, s.Nodes[0].Addr)
		}
	}
	slices.Sort(addrs)
	now := strings.Join(slices.Compact(addrs), ",")
	if was := w.masters.Swap(&now); was == nil || *was != now {
		w.signs.Add(1)
	}
}

// pausing reports whether a pause goes on.
func (w *serverWatch) pausing() bool { return w.config.Now().UnixNano() < w.until.Load() }

// roll is the name of the set of gateways that have restored their memory to the
// servers now known, since they lost data last.
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

// heard notes which gateways are alive, having beaten within some time, and in a
// pause which have restored their memory. When none is missing, the pause is
// over, but not before every gateway had the time to make itself heard. Exchanges
// of before the change still do not count then. It reports whether the pause is about
// to end with one missing.
func (w *serverWatch) heard(epoch int64, alive, restored []string, within time.Duration) (deserted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch.Load() != epoch {
		return false // of another server
	}
	now := w.config.Now()
	for _, p := range alive {
		w.peers[p] = now
	}
	if !w.pausing() {
		if w.until.Swap(0) != 0 && w.missing(restored) {
			w.deserted.Store(epoch)
		}
		maps.DeleteFunc(w.peers, func(_ string, last time.Time) bool { return now.Sub(last) > within })
		return false
	}
	if w.missing(restored) {
		return time.Unix(0, w.until.Load()).Sub(now) <= ratelimit.LossNotice
	}
	if now.Sub(time.Unix(0, w.since.Load())) >= MinRecovery {
		w.until.Store(0)
	}
	return false
}

// missing reports whether one of the gateways heard of has not restored its
// memory. The caller holds mu.
func (w *serverWatch) missing(restored []string) bool {
	for p := range w.peers {
		if !slices.Contains(restored, p) {
			return true
		}
	}
	return false
}

// alive returns the gateways lately heard of, sorted.
func (w *serverWatch) alive() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.peers))
}

// check reports whether the outcome of an exchange that began in epoch counts.
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

// verify asks the servers for their identities.
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
	for addr, id := range found {
		if len(w.known) > 0 && w.known[addr] != id {
			w.changed()
			w.loss = 0
			w.lineage.forget()
			break
		}
	}
	if w.known == nil {
		w.known = make(map[string]string)
	}
	maps.Copy(w.known, found)
	w.present = slices.Collect(maps.Keys(found))
	w.verified.Store(signs)
	return nil
}

// identify returns the run ID of each master. A server that does not tell it (the
// embedded one) is taken to live as long as this process. A node of a cluster that
// cannot be reached is taken to be the one it was: when it is back, that takes a
// new connection.
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

// identity returns the run ID of a server and that of its data's history, which changes
// when a replica is promoted; it is empty if the server does not tell.
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
