package s3store

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// CheckSSE accepts how the server is to encrypt objects.
func CheckSSE(sse string) error {
	switch types.ServerSideEncryption(sse) {
	case types.ServerSideEncryptionAes256, types.ServerSideEncryptionAwsKms, types.ServerSideEncryptionAwsKmsDsse:
		return nil
	}
	return fmt.Errorf("want AES256, aws:kms or aws:kms:dsse, not %.60q", sse)
}

// CheckKMSKey accepts a key together with how the server is to encrypt.
func CheckKMSKey(sse, key string) error {
	if key == "" {
		return nil
	}
	if sse != string(types.ServerSideEncryptionAwsKms) && sse != string(types.ServerSideEncryptionAwsKmsDsse) {
		return errors.New("a KMS key goes with aws:kms or aws:kms:dsse only")
	}
	return CheckKey(key)
}

// encryption is what a write asks of the server.
type encryption struct {
	sse types.ServerSideEncryption
	key *string // nil: the server's default
}

func (c Config) encryption() encryption {
	e := encryption{sse: types.ServerSideEncryption(c.SSE)}
	if c.SSEKMSKeyID != "" {
		e.key = &c.SSEKMSKeyID
	}
	return e
}
