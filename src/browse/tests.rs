//! Files with every kind of object, looked at.
