package natsqueue

import "slipway/job/natsqueue/internal/jsconn"

type (
	// PermissionError says which right this connection's account lacks: Op is publish or subscribe, Subject is what was
	// denied. It is a job.ErrUnavailable that does not pass by waiting.
	PermissionError = jsconn.PermissionError
	// MissingError names a stream or a consumer (Kind) that is not there. Setup makes it. Check returns it.
	MissingError = jsconn.MissingError
	// FullError is a job.ErrFull that names what is full, and by how much.
	FullError = jsconn.FullError
)

// Why Connect failed, beside job.ErrUnavailable.
var (
	// ErrCredentials: the server does not know the user, or not by these credentials.
	ErrCredentials = jsconn.ErrCredentials
	// ErrTLS: the two sides could not agree on TLS. A certificate is not trusted, or none was shown where one is wanted.
	ErrTLS = jsconn.ErrTLS
)
