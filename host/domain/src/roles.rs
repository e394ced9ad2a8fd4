//! Who may do what: five roles, two permissions, and the rule that nobody hands out more than they hold.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The levels of the specification; a higher one may do everything a lower one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Read-only.
    Analyst = 1,
    /// Creates and modifies analytics.
    DataScientist = 2,
    /// Manages connections and endpoints.
    DataEngineer = 3,
    /// Full access to the own company.
    Admin = 4,
    /// Cross-company; platform staff only.
    SuperAdmin = 5,
}

impl Role {
    pub const fn level(self) -> u8 {
        self as u8
    }

    pub const fn from_level(level: i64) -> Option<Self> {
        match level {
            1 => Some(Self::Analyst),
            2 => Some(Self::DataScientist),
            3 => Some(Self::DataEngineer),
            4 => Some(Self::Admin),
            5 => Some(Self::SuperAdmin),
            _ => None,
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Analyst => "Analyst",
            Self::DataScientist => "Data Scientist",
            Self::DataEngineer => "Data Engineer",
            Self::Admin => "Admin",
            Self::SuperAdmin => "Super Admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.level(), self.title())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    Read,
    Write,
}

impl Permission {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            _ => None,
        }
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Permissions {
    pub read: bool,
    pub write: bool,
}

impl Permissions {
    pub const NONE: Self = Self {
        read: false,
        write: false,
    };
    pub const READ: Self = Self {
        read: true,
        write: false,
    };
    pub const READ_WRITE: Self = Self {
        read: true,
        write: true,
    };

    pub const fn has(self, permission: Permission) -> bool {
        match permission {
            Permission::Read => self.read,
            Permission::Write => self.write,
        }
    }

    /// Whether every permission of `other` is also one of these.
    pub const fn covers(self, other: Permissions) -> bool {
        (self.read || !other.read) && (self.write || !other.write)
    }

    pub const fn is_empty(self) -> bool {
        !self.read && !self.write
    }

    pub fn with(mut self, permission: Permission) -> Self {
        match permission {
            Permission::Read => self.read = true,
            Permission::Write => self.write = true,
        }
        self
    }

    /// In the order of the specification: `read`, `write`.
    pub fn names(self) -> Vec<&'static str> {
        [Permission::Read, Permission::Write]
            .into_iter()
            .filter(|p| self.has(*p))
            .map(Permission::as_str)
            .collect()
    }

    /// One small number for the store: 1 = read, 2 = write, 3 = both.
    pub const fn bits(self) -> i64 {
        self.read as i64 | (self.write as i64) << 1
    }

    pub const fn from_bits(bits: i64) -> Self {
        Self {
            read: bits & 1 != 0,
            write: bits & 2 != 0,
        }
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        permissions.into_iter().fold(Self::NONE, Self::with)
    }
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    pub role: Role,
    pub permissions: Permissions,
}

/// Why a key cannot be made or changed as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// 400: no such role.
    #[error("role_id is 1 to 5")]
    UnknownRole,
    /// 400: an empty list of permissions.
    #[error("permissions names at least one of read and write")]
    NoPermission,
    /// 400: role 1 is read-only.
    #[error("role 1 (Analyst) is read-only and cannot have the permission write")]
    AnalystCannotWrite,
    /// 403 `ROLE_ESCALATION`.
    #[error("a key with role {own} cannot hand out role {wanted}", own = own.level(), wanted = wanted.level())]
    RoleAboveOwn { own: Role, wanted: Role },
    /// 403 `ROLE_ESCALATION`.
    #[error("a key cannot hand out the permission {}, which it does not have", .0.as_str())]
    PermissionAboveOwn(Permission),
}

impl GrantError {
    /// Whether the request was well-formed but asks for more than the caller holds (403 rather than 400).
    pub const fn is_escalation(self) -> bool {
        matches!(
            self,
            Self::RoleAboveOwn { .. } | Self::PermissionAboveOwn(_)
        )
    }
}

impl Grant {
    /// Endpoint keys are always this.
    pub const ENDPOINT: Grant = Grant {
        role: Role::Analyst,
        permissions: Permissions::READ,
    };

    /// Resolves what a create-key request asks for against what its caller holds.
    ///
    /// Without `role_id`: `[read]` is role 1, with `write` role 2; neither given: role 1, `[read]`.
    /// Role without permissions: role 1 `[read]`, others `[read, write]` as far as the caller itself may.
    /// Shape errors win over escalation, so that a malformed request is 400 whoever sends it.
    pub fn requested(
        caller: Grant,
        role_id: Option<i64>,
        permissions: Option<Permissions>,
    ) -> Result<Grant, GrantError> {
        let role = match role_id {
            Some(level) => Some(Role::from_level(level).ok_or(GrantError::UnknownRole)?),
            None => None,
        };
        if permissions.is_some_and(Permissions::is_empty) {
            return Err(GrantError::NoPermission);
        }
        let grant = match (role, permissions) {
            (None, None) => Grant {
                role: Role::Analyst,
                permissions: Permissions::READ,
            },
            (None, Some(permissions)) if permissions.write => Grant {
                role: Role::DataScientist,
                permissions,
            },
            (None, Some(permissions)) => Grant {
                role: Role::Analyst,
                permissions,
            },
            (Some(Role::Analyst), None) => Grant {
                role: Role::Analyst,
                permissions: Permissions::READ,
            },
            (Some(role), None) => Grant {
                role,
                permissions: Permissions::READ_WRITE,
            },
            (Some(role), Some(permissions)) => Grant { role, permissions },
        };
        grant.check_shape()?;
        caller.check_covers(grant)?;
        Ok(grant)
    }

    /// Resolves a change of permissions of an existing key.
    pub fn with_permissions(
        self,
        caller: Grant,
        permissions: Permissions,
    ) -> Result<Grant, GrantError> {
        if permissions.is_empty() {
            return Err(GrantError::NoPermission);
        }
        let grant = Grant {
            role: self.role,
            permissions,
        };
        grant.check_shape()?;
        caller.check_covers(grant)?;
        Ok(grant)
    }

    /// Whether the holder of this grant may change or revoke a key with the role `target`.
    pub const fn may_manage(self, target: Role) -> bool {
        self.role.level() >= target.level()
    }

    fn check_shape(self) -> Result<(), GrantError> {
        if self.role == Role::Analyst && self.permissions.write {
            Err(GrantError::AnalystCannotWrite)
        } else {
            Ok(())
        }
    }

    /// Whether the holder of this grant may hand out `wanted`: it has that role and all of these permissions.
    pub fn check_covers(self, wanted: Grant) -> Result<(), GrantError> {
        if wanted.role > self.role {
            return Err(GrantError::RoleAboveOwn {
                own: self.role,
                wanted: wanted.role,
            });
        }
        for permission in [Permission::Read, Permission::Write] {
            if wanted.permissions.has(permission) && !self.permissions.has(permission) {
                return Err(GrantError::PermissionAboveOwn(permission));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINEER: Grant = Grant {
        role: Role::DataEngineer,
        permissions: Permissions::READ_WRITE,
    };

    /// The specification's example: role 3 may create 1, 2 and 3, not 4.
    #[test]
    fn nobody_mints_above_their_own_role() {
        for level in 1..=3 {
            assert!(
                Grant::requested(ENGINEER, Some(level), None).is_ok(),
                "{level}"
            );
        }
        let refused = Grant::requested(ENGINEER, Some(4), None).unwrap_err();
        assert!(refused.is_escalation());
        assert_eq!(
            Grant::requested(ENGINEER, Some(6), None),
            Err(GrantError::UnknownRole)
        );
    }

    /// The two request forms of the specification give the documented roles.
    #[test]
    fn missing_halves_are_filled_in() {
        let read = Grant::requested(ENGINEER, None, Some(Permissions::READ)).unwrap();
        assert_eq!(read.role, Role::Analyst);
        let write = Grant::requested(ENGINEER, None, Some(Permissions::READ_WRITE)).unwrap();
        assert_eq!(write.role, Role::DataScientist);
        let role = Grant::requested(ENGINEER, Some(2), None).unwrap();
        assert_eq!(role.permissions, Permissions::READ_WRITE);
    }

    /// Role 1 is read-only, whoever asks.
    #[test]
    fn analyst_never_writes() {
        assert_eq!(
            Grant::requested(ENGINEER, Some(1), Some(Permissions::READ_WRITE)),
            Err(GrantError::AnalystCannotWrite)
        );
        assert_eq!(
            Grant::ENDPOINT.with_permissions(ENGINEER, Permissions::READ_WRITE),
            Err(GrantError::AnalystCannotWrite)
        );
        assert_eq!(
            Grant::requested(ENGINEER, None, Some(Permissions::NONE)),
            Err(GrantError::NoPermission)
        );
    }
}
