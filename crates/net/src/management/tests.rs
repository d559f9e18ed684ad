//! Tests of management against requests as other clients send them.
