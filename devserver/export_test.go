package devserver

// Kill ends the servers at once, as kill -9 does.
func (s *Servers) Kill() error { return s.kill() }
