package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// statements drops each statement, and swaps each with the next.
func (w *walker) statements(list []ast.Stmt) {
	for i, s := range list {
		if droppable(s) && !isLog(w.text(s)) {
			w.add(s, "", "drop")
		}
		if i+1 < len(list) && w.interact(s, list[i+1]) {
			between := string(w.file.src[w.offset(s.End()):w.offset(list[i+1].Pos())])
			w.addRange(s.Pos(), list[i+1].End(), w.text(list[i+1])+between+w.text(s), "swap")
		}
	}
}

// droppable are statements without which a block still makes sense; what is left in want of a variable does not compile.
func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.IncDecStmt, *ast.BranchStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ReturnStmt:
		return len(s.Results) == 0
	}
	return false
}

// movable are statements whose order may matter.
func movable(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.AssignStmt, *ast.IfStmt:
		return true
	}
	return false
}

// interact tells whether the order of two statements may matter: both call something, or one sets what the other mentions.
func (w *walker) interact(a, b ast.Stmt) bool {
	if !movable(a) || !movable(b) || isLog(w.text(a)) || isLog(w.text(b)) {
		return false
	}
	return w.calls(a) && w.calls(b) || w.sets(a, b) || w.sets(b, a)
}

func (w *walker) calls(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt:
			found = true
		case *ast.CallExpr:
			called := w.info.Types[n.Fun]
			name := w.text(n.Fun)
			found = found || !called.IsType() && (!called.IsBuiltin() || name == "close" || name == "panic" || name == "delete")
		}
		return !found
	})
	return found
}

// sets tells whether a assigns to something that b mentions.
func (w *walker) sets(a, b ast.Stmt) bool {
	assign, ok := a.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, left := range assign.Lhs {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(w.text(left)) + `\b`).MatchString(w.text(b)) {
			return true
		}
	}
	return false
}

// isLog tells a call that only logs: what a log says is no behavior.
func isLog(text string) bool {
	head, _, _ := strings.Cut(text, "(")
	parts := strings.Split(head, ".")
	if len(parts) < 2 || !strings.HasSuffix(strings.ToLower(parts[len(parts)-2]), "log") {
		return false
	}
	return strings.Contains(" Debug Info Warn Error ", " "+parts[len(parts)-1]+" ")
}
