package compiler

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
)

// control builds a control-flow step, or returns nil for another statement. The number of blocks that each statement counts for
// follows OPA's plan compiler: a scan counts as two, its iteration and itself.
func (b *builder) control(stmt ir.Stmt) step {
	switch s := stmt.(type) {
	case *ir.BreakStmt:
		o := outcome(s.Index)
		return func(*Run, frame) outcome { return o }
	case *ir.ReturnLocalStmt:
		from := b.read(s.Source)
		return func(r *Run, f frame) outcome {
			r.value = from.of(f)
			return returned
		}
	case *ir.BlockStmt:
		inner := b.blocks(s.Blocks)
		return func(r *Run, f frame) outcome {
			for _, in := range inner {
				if o := within(in.do(r, f)); o != next {
					return o
				}
			}
			return next
		}
	case *ir.NotStmt:
		inner := b.block(s.Block)
		return func(r *Run, f frame) outcome {
			if o := inner.do(r, f); o != next {
				return within(o)
			}
			return leave
		}
	case *ir.ScanStmt:
		return b.scan(s)
	}
	return nil
}

// scan builds a loop over a value. A value without members is skipped.
func (b *builder) scan(s *ir.ScanStmt) step {
	from, key, value := b.read(s.Source), b.local(s.Key), b.local(s.Value)
	inner := b.block(s.Block)
	round := func(r *Run, f frame, k, v *ast.Term) outcome {
		if r.left--; r.left < 0 {
			return unsure
		}
		f[key], f[value] = k, v
		return within(inner.do(r, f))
	}
	return func(r *Run, f frame) outcome {
		t := from.of(f)
		if t == nil {
			return next
		}
		switch v := t.Value.(type) {
		case *ast.Array:
			for i := range v.Len() {
				if o := round(r, f, ast.InternedTerm(i), v.Elem(i)); o != next {
					return within(o)
				}
			}
		case ast.Set:
			for _, item := range v.Slice() {
				if o := round(r, f, item, item); o != next {
					return within(o)
				}
			}
		case ast.Object:
			return within(members(v, func(k, item *ast.Term) outcome { return round(r, f, k, item) }))
		}
		return next
	}
}

// members calls visit for the members of an object until visit does not return next.
func members(of ast.Object, visit func(k, v *ast.Term) outcome) outcome {
	o := next
	of.Until(func(k, v *ast.Term) bool {
		o = visit(k, v)
		return o != next
	})
	return o
}

// condition builds the step that leaves the block unless a condition holds, or returns nil for another statement.
func (b *builder) condition(stmt ir.Stmt) step {
	switch s := stmt.(type) {
	case *ir.EqualStmt:
		x, y := b.operand(s.A), b.operand(s.B)
		return when(func(f frame) bool { return same(x.of(f), y.of(f)) })
	case *ir.NotEqualStmt:
		x, y := b.operand(s.A), b.operand(s.B)
		return when(func(f frame) bool { return !same(x.of(f), y.of(f)) })
	case *ir.IsArrayStmt:
		return is[*ast.Array](b.operand(s.Source))
	case *ir.IsObjectStmt:
		return is[ast.Object](b.operand(s.Source))
	case *ir.IsSetStmt:
		return is[ast.Set](b.operand(s.Source))
	case *ir.IsDefinedStmt:
		l := b.read(s.Source)
		return when(func(f frame) bool { return l.of(f) != nil })
	case *ir.IsUndefinedStmt:
		l := b.read(s.Source)
		return when(func(f frame) bool { return l.of(f) == nil })
	}
	return nil
}

func when(holds func(frame) bool) step {
	return func(_ *Run, f frame) outcome {
		if holds(f) {
			return next
		}
		return leave
	}
}

// is builds a type check.
func is[T ast.Value](o operand) step {
	return when(func(f frame) bool {
		t := o.of(f)
		if t == nil {
			return false
		}
		_, ok := t.Value.(T)
		return ok
	})
}

// same reports whether two values are equal. Numbers are compared by value.
func same(x, y *ast.Term) bool { return x == y || x != nil && y != nil && x.Equal(y) }

// assignment builds the step that assigns an existing value to a local variable, or returns nil for another statement.
func (b *builder) assignment(stmt ir.Stmt) step {
	switch s := stmt.(type) {
	case *ir.AssignVarStmt:
		from, to := b.operand(s.Source), b.local(s.Target)
		return func(_ *Run, f frame) outcome {
			f[to] = from.of(f)
			return next
		}
	case *ir.AssignVarOnceStmt:
		from, to := b.operand(s.Source), b.local(s.Target)
		return func(_ *Run, f frame) outcome {
			v := from.of(f)
			if f[to] != nil && !same(f[to], v) {
				return unsure // a conflict
			}
			f[to] = v
			return next
		}
	case *ir.ResetLocalStmt:
		return put(b.local(s.Target), nil)
	case *ir.AssignIntStmt:
		return put(b.local(s.Target), ast.InternedTerm(s.Value))
	case *ir.MakeNumberIntStmt:
		return put(b.local(s.Target), ast.InternedTerm(s.Value))
	case *ir.MakeNumberRefStmt:
		return put(b.local(s.Target), ast.NewTerm(ast.Number(b.plan.Static.Strings[s.Index].Value)))
	case *ir.MakeNullStmt:
		return put(b.local(s.Target), ast.InternedNullTerm)
	case *ir.DotStmt:
		return b.dot(s)
	case *ir.LenStmt:
		from, to := b.operand(s.Source), b.local(s.Target)
		return func(_ *Run, f frame) outcome {
			n, ok := length(from.of(f))
			if !ok {
				return unsure
			}
			f[to] = ast.InternedTerm(n)
			return next
		}
	}
	return nil
}

// length returns the number of members of a value. ok is false if it cannot have any.
func length(t *ast.Term) (n int, ok bool) {
	if t == nil {
		return 0, false
	}
	v, ok := t.Value.(interface{ Len() int })
	if !ok {
		return 0, false
	}
	return v.Len(), true
}

func put(to int, v *ast.Term) step {
	return func(_ *Run, f frame) outcome {
		f[to] = v
		return next
	}
}

// dot builds a member lookup.
func (b *builder) dot(s *ir.DotStmt) step {
	if key, ok := s.Key.Value.(ir.StringIndex); ok && s.Source.Value == ir.Data && b.plan.Static.Strings[key].Value == b.root {
		return func(*Run, frame) outcome { return leave } // there is no data below the root
	}
	from, key, to := b.operand(s.Source), b.operand(s.Key), b.local(s.Target)
	return func(_ *Run, f frame) outcome {
		f[to] = member(from.of(f), key.of(f))
		if f[to] == nil {
			return leave
		}
		return next
	}
}

// member returns a member of a value, or nil.
func member(of, key *ast.Term) *ast.Term {
	if of == nil || key == nil {
		return nil
	}
	switch v := of.Value.(type) {
	case ast.Object:
		return v.Get(key)
	case *ast.Array:
		return v.Get(key)
	case ast.Set:
		if v.Contains(key) {
			return key
		}
	}
	return nil
}
